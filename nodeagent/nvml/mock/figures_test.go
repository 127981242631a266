package mock

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// The mock cards are as the figures of real cards say, profile by profile: see
// gang/testdata/grids.txt.
func TestModelsAreAsFigured(t *testing.T) {
	data, err := os.ReadFile("../../../gang/testdata/grids.txt")
	if err != nil {
		t.Fatal(err)
	}
	figures, model := map[string][]string{}, ""
	for line := range strings.Lines(string(data)) {
		switch {
		case strings.HasPrefix(line, "#"):
		case line[0] != ' ':
			model = strings.Fields(line)[0]
			figures[model] = []string{strings.TrimSpace(line)}
		default:
			figures[model] = append(figures[model], strings.TrimSpace(line))
		}
	}
	for _, m := range Models() {
		got := []string{fmt.Sprintf("%s %d", m.Key, m.Units)}
		for _, p := range m.Profiles {
			starts := strings.ReplaceAll(strings.Trim(fmt.Sprint(p.Starts), "[]"), " ", ",")
			got = append(got, fmt.Sprintf("%s %d %s enum=%d id=%d max=%d", p.Name, p.Size, starts, p.Enum, p.ID, p.Max))
		}
		want := slices.Clone(figures[m.Key])
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", m.Key, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
