package store

import "strings"

// commentPrefix begins the names of files that hold what people say of a run, each comment in a file of its own: two who
// write at once do not meet.
const commentPrefix = "comment-"

// CommentFile is the name of the file that holds a comment.
func CommentFile(id string) string { return commentPrefix + id + ".json" }

// CommentOf is the id of the comment that a file holds; false: it holds none.
func CommentOf(name string) (id string, is bool) {
	id, begins := strings.CutPrefix(name, commentPrefix)
	id, ends := strings.CutSuffix(id, ".json")
	return id, begins && ends && validID(id)
}
