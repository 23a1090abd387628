//go:build !linux

package torch

func populate[T any](column []T, from, to int) {}
