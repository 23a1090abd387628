package launch

// Group is a control group in which a program begins, and so all that it starts. The zero value is ours.
type Group struct {
	Version int    // of the kernel's control groups, 1 or 2
	Folder  string // of the group, below ours in version 1
}
