package main

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/admission"
	"sluice.dev/sluice/admission/api"
)

func TestHistory(t *testing.T) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	h := api.New(api.Fixed{Image: admission.NewState(admission.DefaultConfig()).Image(), At: at}, api.Everybody{}, time.Now)
	h.Remember(func(workload, _ string, _ int) ([]admission.Decision, error) {
		return []admission.Decision{{Seq: 7, At: at, Evict: []admission.Eviction{{Key: workload, Cause: admission.Reclaimed, For: "a/big"}}}}, nil
	})
	server := httptest.NewServer(h)
	defer server.Close()
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"history small -n b", exitOK, "2030-01-01 00:00:00  b/small  Evicted  Reclaimed"},
		{"history small -n b -o json", exitOK, `"by": "a/big"`},
		{"history small -n b --limit 0", exitFailed, "limit is 1 to"},
		{"history small --from x.json", exitFailed, "holds no history"},
	} {
		var out bytes.Buffer
		if code := executeAs("sluice", append(strings.Fields(c.args), "--api", server.URL), &out, &out); code != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: exit code %d\n%s", c.args, code, out.String())
		}
	}
}
