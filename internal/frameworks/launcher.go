package frameworks

import "strconv"

// Launcher is a program that starts ranks, as its command line is read.
type Launcher struct {
	Name     string   // the words that start it
	Modules  []string // what python -m starts it by
	Switches []string // flags that take no value; every other one takes one, as --flag value or --flag=value
	PerNode  []string // flags that say the ranks of a node
	Nodes    string   // the flag that says the nodes, where PerNode says the ranks of all
	Stays    bool     // it says more to a rank than its number, so that the rank starts with it (ranks.py of the agent)
}

// RanksHere are the words between an interpreter and its script that start so many ranks on this machine, by PyTorch's
// own launcher.
func RanksHere(ranks int) []string {
	return []string{"-m", "torch.distributed.run", "--standalone", "--nproc-per-node", strconv.Itoa(ranks)}
}
