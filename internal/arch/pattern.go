package arch

import (
	"slices"
	"strings"
)

// matches reports whether a folder fits a pattern.
func matches(pattern, folder string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return below(tree, folder)
	}
	want, have := strings.Split(pattern, "/"), strings.Split(folder, "/")
	return slices.EqualFunc(want, have, func(w, h string) bool { return w == "*" || w == h })
}

func matchesAny(patterns []string, folder string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, folder) })
}

// below reports whether a slash-separated path is tree or lies in it.
func below(tree, path string) bool {
	return path == tree || strings.HasPrefix(path, tree+"/")
}

func belowAny(trees []string, path string) bool {
	return slices.ContainsFunc(trees, func(t string) bool { return below(t, path) })
}
