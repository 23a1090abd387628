// Command takes is what Windows' hightide is tried on: it takes memory, as does a second process of it that outlives
// its own parent, and ends with an exit code.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// take touches so many MiB.
func take(mib int) []byte {
	block := make([]byte, mib<<20)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	return block
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: takes MIB CHILD-MIB EXIT-CODE")
		os.Exit(2)
	}
	var numbers [3]int
	for i, word := range os.Args[1:] {
		numbers[i], _ = strconv.Atoi(word)
	}
	block := take(numbers[0])
	var child *exec.Cmd
	if numbers[1] > 0 {
		child = exec.Command(os.Args[0], os.Args[2], "0", "0")
		if err := child.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
	}
	fmt.Println("took", len(block)>>20, "MiB")
	if os.Getenv("TAKES_UNTIL_EOF") != "" { // its number, for who attaches; it ends when it is told to
		fmt.Println(os.Getpid())
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	time.Sleep(2 * time.Second)
	if child != nil {
		_ = child.Wait()
	}
	os.Exit(numbers[2])
}
