package format

import "io"

// Tell names the format of a file from its beginning, and whether it is compressed. ErrUnknown and ErrEmpty as Decode gives them.
func Tell(r io.Reader) (f *Format, compressed bool, err error) {
	file, err := open(r, true)
	defer file.close()
	if err != nil {
		return nil, false, err
	}
	if file.format == nil {
		return nil, file.compressed != nil, ErrUnknown
	}
	return file.format, file.compressed != nil, nil
}
