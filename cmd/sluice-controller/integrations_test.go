package main

import (
	"slices"
	"testing"

	"sluice.dev/sluice/admission/jobs"
	"sluice.dev/sluice/cmd/sluice-controller/config"
)

// The configuration offers what is linked, and by default all of it.
func TestFrameworksAreThoseLinked(t *testing.T) {
	var linked []string
	for _, f := range jobs.Frameworks() {
		linked = append(linked, f.Name)
	}
	if !slices.Equal(config.Frameworks, linked) {
		t.Errorf("the configuration knows %v\nlinked are %v", config.Frameworks, linked)
	}
	if got := config.Default().Integrations.Frameworks; !slices.Equal(got, linked) {
		t.Errorf("by default %v\nlinked are %v", got, linked)
	}
}
