package modelfile

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"hightide/internal/mem"
)

// pt2Types are those of torch.export by their numbers. Source: ScalarType of torch/_export/serde/schema.py.
var pt2Types = map[int]Type{1: {"U8", 1, 1}, 2: {"I8", 1, 1}, 3: {"I16", 1, 2}, 4: {"I32", 1, 4}, 5: {"I64", 1, 8}, 6: F16,
	7: F32, 8: {"F64", 1, 8}, 9: {"C32", 1, 4}, 10: {"C64", 1, 8}, 11: {"C128", 1, 16}, 12: {"BOOL", 1, 1}, 13: BF16,
	28: {"U16", 1, 2}, 29: FP8, 30: {"F8_E5M2", 1, 1}, 31: {"F8_E4M3FNUZ", 1, 1}, 32: {"F8_E5M2FNUZ", 1, 1}}

// pt2Weights is what a file of torch.export says of its weights, or its constants.
type pt2Weights struct {
	Config map[string]struct {
		Path string `json:"path_name"`
		Meta *struct {
			Type  int `json:"dtype"`
			Sizes []struct {
				Int *int64 `json:"as_int"`
			} `json:"sizes"`
		} `json:"tensor_meta"`
	} `json:"config"`
}

// readPT2 reads the weights and constants of a file that torch.export saved: a zip whose members are the tensors, and
// lists of them. Several may share one, which counts once. Nothing is unpickled.
func readPT2(r io.ReaderAt, size int64, keep *budget, m *Model) error {
	if size < 0 {
		return &Error{Offset: -1, Err: errors.New("the size of the file is not known")}
	}
	limited := &bounded{r, maxIndex}
	archive, err := zip.NewReader(limited, size)
	if err != nil {
		return &Error{Offset: -1, Err: fmt.Errorf("no exported program: %w", err)}
	}
	members := make(map[string]*zip.File, len(archive.File))
	var lists []*zip.File
	for _, member := range archive.File {
		members[member.Name] = member
		for _, list := range []string{"/data/weights/", "/data/constants/"} {
			if strings.Contains(member.Name, list) && strings.HasSuffix(member.Name, "_config.json") {
				lists = append(lists, member)
			}
		}
	}
	if len(lists) == 0 {
		return &Error{Offset: -1, Err: errors.New("no list of weights in it: exports of older versions have none, save it again")}
	}
	seen := map[string]bool{}
	for _, list := range lists {
		some, err := pt2Tensors(list, members, seen, keep)
		if err != nil {
			return &Error{Offset: -1, Err: fmt.Errorf("%s: %w", short(list.Name), err)}
		}
		m.Tensors = append(m.Tensors, some...)
	}
	return nil
}

// pt2Tensors are those of one list, whose members have not been seen.
func pt2Tensors(list *zip.File, members map[string]*zip.File, seen map[string]bool, keep *budget) (tensors []Tensor, err error) {
	if list.UncompressedSize64 > maxHeader {
		return nil, fmt.Errorf("larger than the %d bytes that hightide reads of it", int64(maxHeader))
	}
	in, err := list.Open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var said pt2Weights
	if err := json.NewDecoder(io.LimitReader(in, maxHeader)).Decode(&said); err != nil {
		return nil, inHeader(err)
	}
	names := make([]string, 0, len(said.Config))
	for name := range said.Config {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		one := said.Config[name]
		where := path.Join(path.Dir(list.Name), one.Path)
		member := members[where]
		switch {
		case one.Meta == nil || seen[where]:
			continue // no tensor, or one that shares
		case member == nil:
			return nil, fmt.Errorf("tensor %q is not in the file", short(name))
		}
		if member.Method != zip.Store || member.UncompressedSize64 != member.CompressedSize64 || member.UncompressedSize64 > 1<<60 {
			return nil, fmt.Errorf("tensor %q is compressed, and exports are not", short(name))
		}
		seen[where] = true
		t := Tensor{Name: name, Bytes: mem.Bytes(member.UncompressedSize64)}
		known := false
		if t.Type, known = pt2Types[one.Meta.Type]; !known {
			return nil, fmt.Errorf("tensor %q is of the unknown type %d", short(name), one.Meta.Type)
		}
		for _, size := range one.Meta.Sizes {
			if size.Int == nil {
				return nil, fmt.Errorf("tensor %q has a size that is no number", short(name))
			}
			t.Shape = append(t.Shape, *size.Int)
		}
		if needs, err := t.Type.size(t.Shape); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", short(name), err)
		} else if needs > t.Bytes {
			return nil, fmt.Errorf("tensor %q takes %d bytes, and %d are there", short(name), needs, t.Bytes)
		}
		if err := keep.tensor(&t); err != nil {
			return nil, err
		}
		tensors = append(tensors, t)
	}
	return tensors, nil
}

// bounded lets so many bytes be read: the list of a zip's members is kept whole by who reads it.
type bounded struct {
	io.ReaderAt
	left int64
}

func (b *bounded) ReadAt(into []byte, at int64) (int, error) {
	if b.left -= int64(len(into)); b.left < 0 {
		return 0, errors.New("more than hightide reads of it")
	}
	return b.ReaderAt.ReadAt(into, at)
}
