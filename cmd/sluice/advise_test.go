package main

import (
	"bytes"
	"strings"
	"testing"

	"sluice.dev/sluice/admission/sense"
)

func TestWriteAdvice(t *testing.T) {
	var out, note bytes.Buffer
	err := writeAdvice(&out, &note, []sense.Advice{
		{Product: "NVIDIA A100-SXM4-40GB", Resource: "nvidia.com/mig-3g.20gb", Count: 1, Offered: true, Why: "the smallest slice with the memory"},
		{Product: "NVIDIA A10", Resource: "nvidia.com/gpu", Count: 1, Sharing: "shared", Why: "one of 4 shares of a card"},
	})
	want := `CARD                   ASK FOR                                                    OFFERED                          WHY
NVIDIA A100-SXM4-40GB  nvidia.com/mig-3g.20gb: 1                                  yes                              the smallest slice with the memory
NVIDIA A10             nvidia.com/gpu: 1, annotation sluice.dev/sharing: shared  no: no card is cut or shared so  one of 4 shares of a card
`
	if got := unspaced(out.String()); err != nil || got != unspaced(want) {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := writeAdvice(&out, &note, nil); err == nil || !strings.Contains(note.String(), "no node agent") {
		t.Errorf("%v: %s", err, note.String())
	}
}

func unspaced(s string) string {
	var lines []string
	for _, l := range strings.Split(s, "\n") {
		lines = append(lines, strings.Join(strings.Fields(l), " "))
	}
	return strings.Join(lines, "\n")
}

func TestAdviseRefuses(t *testing.T) {
	for _, args := range [][]string{{"advise"}, {"advise", "--memory", "much"}, {"advise", "--memory", "-1Gi"}, {"advise", "--memory", "1Gi", "--kubeconfig", "/nonexistent"}} {
		var out, err bytes.Buffer
		if code := execute(args, &out, &err); code != exitFailed || err.Len() == 0 || out.Len() > 0 {
			t.Errorf("%q: exit %d, %s%s", args, code, &out, &err)
		}
	}
}
