package publish

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// clip cuts a text to at most n characters, as the API server counts them.
func clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "?")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// cards names cards by their indexes: "card 3", "cards 0-2, 5".
func cards(indexes []int32) string {
	slices.Sort(indexes)
	indexes = slices.Compact(indexes)
	if len(indexes) == 1 {
		return fmt.Sprintf("card %d", indexes[0])
	}
	var runs []string
	for i := 0; i < len(indexes); {
		n := i + 1
		for n < len(indexes) && indexes[n] == indexes[n-1]+1 {
			n++
		}
		switch n - i {
		case 1:
			runs = append(runs, strconv.Itoa(int(indexes[i])))
		default:
			runs = append(runs, fmt.Sprintf("%d-%d", indexes[i], indexes[n-1]))
		}
		i = n
	}
	return "cards " + strings.Join(runs, ", ")
}

// within is n as the API holds numbers, at least low.
func within(n, low int) int32 { return int32(min(max(n, low), 1<<31-1)) }

// optional is an optional number as the API holds it.
func optional(n *int) *int32 {
	if n == nil {
		return nil
	}
	v := within(*n, -1<<31)
	return &v
}
