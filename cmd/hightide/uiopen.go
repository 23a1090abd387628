package main

import (
	"fmt"
	"html"
	"os"
)

// openPrivately opens an address that has a token. The browser is handed a file that leads there, as every user of a machine sees the
// arguments of its programs. remove deletes the file.
func (a *app) openPrivately(address string) (remove func(), err error) {
	dir, err := a.engine().Keep("ui")
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(dir, "open-*.html") // which nobody else may read
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.Remove(file.Name()) }
	target := html.EscapeString(address)
	_, err = fmt.Fprintf(file, "<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer><meta http-equiv=refresh content=\"0; url=%s\">\n<a href=\"%s\">hightide</a>\n", target, target)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		remove()
		return nil, err
	}
	a.openInBrowser(file.Name())
	return remove, nil
}
