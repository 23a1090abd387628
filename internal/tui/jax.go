package tui

func jax(s *State, width, height int) []string {
	return frameworkView(s, framework{"jax", "JAX"}, width, height)
}
