package growth

import (
	"fmt"

	"hightide/internal/mem"
)

// leastOfHoles is the part of a growth that holes of malloc must be, for it not to be told as one.
const leastOfHoles = 0.5

// moreHoles is by how much what lay free inside malloc's arenas rose while growth was looked for.
func (in *Found) moreHoles(process uint32) float64 {
	from, to := in.ClockOf(process).Window(in.Run.Process(process), in.End)
	return float64(in.HolesAt(process, to).Or(0) - in.HolesAt(process, from).Or(0))
}

// holesWords says that most of a growth is free memory of malloc's, and what may keep it there.
func (in *Found) holesWords(g *growing) string {
	said := fmt.Sprintf("%v of it (%s) lie free inside malloc's arenas, between blocks in use, where no line holds them.",
		bytesPer(g.holes), mem.Estimated)
	for i := range in.growing {
		if other := &in.growing[i]; other.process == g.process && len(other.lines) > 0 {
			return said + fmt.Sprintf(" What grows at %s may lie between them, and keep malloc from giving them back.",
				mem.LineName(other.where()))
		}
	}
	return said
}
