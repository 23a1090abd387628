// Package here has the table of processes of this system. It is nil on Linux, where /proc is read.
package here
