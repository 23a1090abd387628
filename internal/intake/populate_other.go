//go:build !linux

package intake

func populate[T any](column []T, from, to int) {}
