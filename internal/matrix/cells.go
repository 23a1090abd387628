package matrix

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// cells makes the combinations: the product of the axes, without what is excluded, and then what is included.
func (s *Spec) cells(r *reader, axes, include, exclude *node) {
	if len(r.problems) > 0 {
		return // what follows would complain of the same again
	}
	base := make([][]string, len(s.Axes))
	for i, axis := range s.Axes {
		base[i] = slices.Clone(axis.Values)
	}
	if n := product(base); n > mostCells {
		r.fail(axes, "that makes %d cells; %d is the most", n, mostCells)
		return
	}
	at := map[string]int{}
	all := crossed(base)
	for _, one := range r.list(exclude, "exclude") {
		all = s.without(r, one, all)
	}
	for _, values := range all {
		s.add(at, values)
	}
	for _, one := range r.list(include, "include") {
		s.include(r, one, base, at)
		if len(s.Cells) > mostCells {
			r.fail(one, "that makes more than %d cells", mostCells)
			return
		}
	}
	if len(s.Cells) == 0 && len(r.problems) == 0 {
		r.fail(exclude, "every cell is excluded")
	}
}

func product(lists [][]string) int {
	n := 1
	for _, list := range lists {
		if n *= len(list); n > mostCells {
			return n
		}
	}
	return n
}

// crossed are one of each list, the last changing fastest.
func crossed(lists [][]string) [][]string {
	all := [][]string{nil}
	for _, list := range lists {
		var next [][]string
		for _, before := range all {
			for _, value := range list {
				next = append(next, append(slices.Clip(before), value))
			}
		}
		all = next
	}
	return all
}

// without takes the combinations away that an exclude names.
func (s *Spec) without(r *reader, one *node, all [][]string) [][]string {
	named := s.named(r, one, "an exclude")
	if named == nil {
		return all
	}
	left := slices.DeleteFunc(slices.Clone(all), func(values []string) bool { return s.matches(named, values) })
	if len(left) == len(all) && len(r.problems) == 0 {
		r.fail(one, "this excludes no cell")
	}
	return left
}

// named are the values of some axes that exclude and when choose cells by; nil after a complaint.
func (s *Spec) named(r *reader, one *node, what string) map[string][]string {
	before := len(r.problems)
	named := map[string][]string{}
	for _, entry := range r.entries(one, what) {
		named[entry.key.Value] = s.known(r, entry)
	}
	if len(r.problems) > before {
		return nil
	}
	return named
}

// matches says whether a combination has one of the named values on each named axis.
func (s *Spec) matches(named map[string][]string, values []string) bool {
	for name, list := range named {
		if !slices.Contains(list, values[s.axis(name)]) {
			return false
		}
	}
	return true
}

// include adds the named values with all of the other axes.
func (s *Spec) include(r *reader, one *node, base [][]string, at map[string]int) {
	lists := slices.Clone(base)
	for _, entry := range r.entries(one, "an include") {
		i := s.axis(entry.key.Value)
		if i < 0 {
			r.unknown(entry.key, "axis", entry.key.Value, s.axisNames())
			return
		}
		lists[i] = nil
		for _, n := range r.scalars(entry.value, "the values of "+entry.key.Value) {
			text := s.value(r, entry.key.Value, n)
			if text == "" {
				return
			}
			lists[i] = append(lists[i], text)
		}
	}
	if n := product(lists); n > mostCells {
		r.fail(one, "that makes %d cells; %d is the most", n, mostCells)
		return
	}
	for i, list := range lists {
		for _, value := range list {
			if axis := &s.Axes[i]; !slices.Contains(axis.Values, value) {
				axis.Values = append(axis.Values, value)
			}
		}
	}
	for _, values := range crossed(lists) {
		if !s.add(at, values) {
			r.fail(one, "the cell %s is there already", s.key(values))
			return
		}
	}
}

// add makes a cell of a combination; false: there is one.
func (s *Spec) add(at map[string]int, values []string) bool {
	key := s.key(values)
	if _, twice := at[key]; twice {
		return false
	}
	at[key] = len(s.Cells)
	s.Cells = append(s.Cells, Cell{Key: key, Values: values})
	return true
}

// key names a cell: "framework=pytorch batch=16".
func (s *Spec) key(values []string) string {
	parts := make([]string, len(values))
	for i, value := range values {
		if strings.ContainsAny(value, " \t\"=") {
			value = strconv.Quote(value)
		}
		parts[i] = s.Axes[i].Name + "=" + value
	}
	return strings.Join(parts, " ")
}

// Value is a cell's value of an axis; "" where the matrix has no such axis.
func (s *Spec) Value(cell *Cell, axis string) string {
	if i := s.axis(axis); i >= 0 {
		return cell.Values[i]
	}
	return ""
}

// Environment is what a cell runs in: of what several environments say, the last.
func (s *Spec) Environment(cell *Cell) Environment {
	all := Environment{Env: map[string]string{}}
	for _, env := range s.Environments {
		if !s.matches(env.When, cell.Values) {
			continue
		}
		if env.Python != "" {
			all.Python = env.Python
		}
		maps.Copy(all.Env, env.Env)
	}
	return all
}

// Only keeps the cells that have one of the values on each named axis, as in "batch=16". A wrong word is a usage error.
func (s *Spec) Only(chosen []string) error {
	named := map[string][]string{}
	for _, one := range chosen {
		name, text, ok := strings.Cut(one, "=")
		i := s.axis(name)
		switch {
		case !ok:
			return usage("--only %s is not of the form axis=value", one)
		case i < 0:
			return usage("--only %s: unknown axis %q%s", one, name, orKnown(name, s.axisNames()))
		}
		for value := range strings.SplitSeq(text, ",") {
			value = s.alias(name, value)
			if !slices.Contains(s.Axes[i].Values, value) {
				return usage("--only %s: unknown %s %q%s", one, name, value, orKnown(value, s.Axes[i].Values))
			}
			named[name] = append(named[name], value)
		}
	}
	s.Cells = slices.DeleteFunc(s.Cells, func(c Cell) bool { return !s.matches(named, c.Values) })
	if len(s.Cells) == 0 {
		return usage("no cell is left by --only %s", strings.Join(chosen, " --only "))
	}
	return nil
}
