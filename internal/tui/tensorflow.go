package tui

func tensorflow(s *State, width, height int) []string {
	return frameworkView(s, framework{"tensorflow", "TensorFlow"}, width, height)
}
