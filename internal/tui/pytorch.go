package tui

func pytorch(s *State, width, height int) []string {
	return frameworkView(s, framework{"torch", "PyTorch"}, width, height)
}
