package sense

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// most is how many names a text lists.
const most = 4

func list(names []string) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func sorted(m map[string]int64) []string { return slices.Sorted(maps.Keys(m)) }

func sortedKeys(m map[string][]string) []string { return slices.Sorted(maps.Keys(m)) }
