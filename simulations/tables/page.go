package tables

import (
	"fmt"
	"os"
	"strings"
)

// Marks between which the tables stand on a page with other things on it.
const (
	markBegin = "<!-- tables: written by bin/tables, do not edit -->"
	markEnd   = "<!-- tables end -->"
)

// Insert writes the text between the marks of the page, or at its end with marks.
func Insert(page, text string) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("read the page: %w", err)
	}
	s := string(old)
	before, rest, found := strings.Cut(s, markBegin)
	after := "\n"
	if found {
		var ends bool
		if _, after, ends = strings.Cut(rest, markEnd); !ends {
			return fmt.Errorf("%s has %q without %q", page, markBegin, markEnd)
		}
	} else {
		before = strings.TrimRight(s, "\n") + "\n\n"
	}
	s = before + markBegin + "\n\n" + strings.TrimRight(text, "\n") + "\n\n" + markEnd + after
	if err := os.WriteFile(page, []byte(s), 0o644); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
