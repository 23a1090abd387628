package hub

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// isOn says whether a variable of the hub's library switches something on.
func isOn(name string) bool {
	return slices.Contains([]string{"1", "ON", "YES", "TRUE"}, strings.ToUpper(os.Getenv(name)))
}

// CacheDir is where the hub's library keeps what it downloads.
func CacheDir() string {
	for _, name := range []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"} {
		if dir := os.Getenv(name); dir != "" {
			return dir
		}
	}
	return filepath.Join(home(), "hub")
}

// home is the hub library's folder.
func home() string {
	if dir := os.Getenv("HF_HOME"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "huggingface")
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, ".cache", "huggingface")
}

// token is what the user has for the hub; "": nothing.
func token() string {
	for _, name := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} {
		if text := strings.TrimSpace(os.Getenv(name)); text != "" {
			return text
		}
	}
	file := os.Getenv("HF_TOKEN_PATH")
	if file == "" {
		file = filepath.Join(home(), "token")
	}
	text, err := os.ReadFile(file)
	if err != nil || len(text) > 4096 {
		return ""
	}
	return strings.TrimSpace(string(text))
}
