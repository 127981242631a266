package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const head = "apiVersion: config.sluice.dev/v1alpha1\nkind: Configuration\n"

func TestEmptyFileMeansDefaults(t *testing.T) {
	got, err := Read("f.yaml", []byte(head))
	if err != nil {
		t.Fatal(err)
	}
	if want := Default(); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v\nwant %+v", got, want)
	}
}

func TestFileOverridesOnlyWhatItNames(t *testing.T) {
	got, err := Read("f.yaml", []byte(head+`
namespace: queueing
policy: {reserveAfter: 90s, minRuntime: 5m}
integrations: {frameworks: [batch/job]}
webhook:
  url: https://localhost:19443
  host: 127.0.0.1
  port: 19443
client: {qps: 50}
health: {bindAddress: "0"}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Namespace = "queueing"
	want.Policy.ReserveAfter, want.Policy.MinRuntime = 90*time.Second, 5*time.Minute
	want.Integrations.Frameworks = []string{"batch/job"}
	want.Webhook.URL, want.Webhook.Host, want.Webhook.Port = "https://localhost:19443", "127.0.0.1", 19443
	want.Client.QPS = 50
	want.Health.BindAddress = "0"
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v\nwant %+v", got, want)
	}
}

// Each file is wrong in one way or several, and each refusal names its line.
func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"empty":           {"", []string{"f.yaml:1: the file is empty"}},
		"only a comment":  {"# nothing\n", []string{"f.yaml:1: the file is empty"}},
		"list":            {"- a\n", []string{"f.yaml:1: not a mapping"}},
		"syntax":          {head + "policy: [\n", []string{"f.yaml:"}},
		"no version":      {"kind: Configuration\n", []string{`f.yaml:1: apiVersion: "", want "config.sluice.dev/v1alpha1"`}},
		"other version":   {"apiVersion: config.sluice.dev/v1\nkind: Configuration\n", []string{`f.yaml:1: apiVersion: "config.sluice.dev/v1"`}},
		"other kind":      {"apiVersion: config.sluice.dev/v1alpha1\nkind: Config\n", []string{`f.yaml:2: kind: "Config"`}},
		"unknown key":     {head + "polcy: {}\n", []string{`f.yaml:3: unknown key "polcy"`}},
		"nested unknown":  {head + "webhook:\n  enabled: true\n  prot: 1\n", []string{`f.yaml:5: unknown key "prot"`}},
		"key twice":       {head + "namespace: a\nnamespace: b\n", []string{`f.yaml:4: mapping key "namespace" already defined at line 3`}},
		"two documents":   {head + "---\nkind: Configuration\n", []string{"f.yaml:3: a second document"}},
		"bare number":     {head + "policy:\n  reserveAfter: 120\n", []string{"f.yaml:4: policy.reserveAfter is 120, want a duration of at most 292 years with its unit"}},
		"bad duration":    {head + "policy:\n  growEvery: soon\n", []string{"f.yaml:4: policy.growEvery is soon, want a duration of at most 292 years with its unit"}},
		"text for number": {head + "webhook: {port: many}\n", []string{"f.yaml:3: webhook.port is many, want a whole number"}},
		"mapping for text": {head + "journal: {path: {a: b}}\n", []string{
			"f.yaml:3: a mapping, want a string",
		}},
		"port": {head + "webhook:\n  port: 70000\n", []string{"f.yaml:4: webhook.port: 70000, want 1 to 65535"}},
		"label policy": {head + "labelPolicies:\n- {name: a, selector: {}, labels: {x/y/z: 1}}\n- {name: a, selector: {p: q}, labels: {k: v}}\n", []string{
			"f.yaml:3: labelPolicies: a: selector and labels must not be empty", "label x/y/z=1", "number 2 is called \"a\"",
		}},
		"two values":       {head + "labelPolicies:\n- {name: a, selector: {p: q}, labels: {k: v}}\n- {name: b, selector: {p: q}, labels: {k: w}}\n", []string{"b: label k is to be v and w on the same nodes"}},
		"user key":         {head + "policy: {userKey: \"a b\"}\n", []string{"f.yaml:3: policy.userKey"}},
		"negative":         {head + "policy:\n  minRuntime: -1s\n", []string{"f.yaml:4: policy.minRuntime: -1s is negative"}},
		"placement":        {head + "policy:\n  placement: spread\n", []string{`f.yaml:4: policy.placement: "spread", want "pack"`}},
		"framework":        {head + "integrations:\n  frameworks: [batch/job, ray]\n", []string{`f.yaml:4: integrations.frameworks: unknown framework "ray"`}},
		"volcano's pods":   {head + "integrations:\n  volcano: true\nwebhook: {enabled: false}\n", []string{`f.yaml:4: integrations.volcano: true, but pods are taken over by a webhook`}},
		"framework twice":  {head + "integrations:\n  frameworks: [pod, pod]\n", []string{`f.yaml:4: integrations.frameworks: "pod" is named twice`}},
		"framework's pods": {head + "integrations:\n  frameworks: [deployment]\n", []string{`f.yaml:4: integrations.frameworks: "deployment" queues the pods of its objects`}},
		"kind without all": {head + "integrations:\n  kinds:\n  - kind: Render\n", []string{
			`f.yaml:5: integrations.kinds.0.apiVersion: "", want GROUP/VERSION`, "f.yaml:5: integrations.kinds.0.suspend: empty",
			"f.yaml:5: integrations.kinds.0.podSets: empty", "f.yaml:5: integrations.kinds.0.succeeded: empty",
		}},
		"kind with paths": {head + "integrations:\n  kinds:\n  - apiVersion: a.example.com/v1\n    kind: A\n    suspend: spec..x\n    podSets:\n    - template: spec.list[0]\n    failed: [{path: status.phase}]\n", []string{
			`f.yaml:7: integrations.kinds.0.suspend: "spec..x"`, `f.yaml:9: integrations.kinds.0.podSets.0.template: "spec.list[0]"`,
			"f.yaml:10: integrations.kinds.0.failed.0.values: empty",
		}},
		"no framework":      {head + "integrations:\n  frameworks: []\n", []string{"f.yaml:4: integrations.frameworks: empty"}},
		"plain http":        {head + "webhook:\n  url: http://localhost:1\n", []string{"f.yaml:4: webhook.url:"}},
		"address in url":    {head + "webhook:\n  url: https://127.0.0.1:1\n", []string{"f.yaml:4: webhook.url: the host is the IP address 127.0.0.1"}},
		"qps zero":          {head + "client:\n  qps: 0\n", []string{"f.yaml:4: client.qps: 0, want more than 0"}},
		"qps NaN":           {head + "client:\n  qps: .nan\n", []string{"f.yaml:4: client.qps: NaN, want more than 0"}},
		"address":           {head + "metrics:\n  bindAddress: 8080\n", []string{`f.yaml:4: metrics.bindAddress: "8080", want HOST:PORT`}},
		"lease shorter":     {head + "leaderElection:\n  enabled: true\n  leaseDuration: 5s\n", []string{"f.yaml:5: leaderElection.leaseDuration: 5s"}},
		"several at a time": {head + "a: 1\nb: 2\n", []string{`f.yaml:3: unknown key "a"`, `f.yaml:4: unknown key "b"`}},
		"several values": {head + "webhook: {port: 0}\nclient: {burst: 0}\n", []string{
			"f.yaml:3: webhook.port: 0", "f.yaml:4: client.burst: 0",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read("f.yaml", []byte(test.text))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got  %s\nwant %s", err, want)
				}
			}
		})
	}
}

func TestReadFileNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.yaml")
	if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Fatalf("missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte("x: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), path+":1: unknown key") {
		t.Fatalf("unknown key: %v", err)
	}
}

// A configuration that is off needs none of the values it would use.
func TestDisabledPartsAreNotChecked(t *testing.T) {
	_, err := Read("f.yaml", []byte(head+"webhook: {enabled: false, port: 0}\nleaderElection: {leaseDuration: 1s}\n"))
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever the text, Read refuses it or returns a configuration that is valid.
func FuzzRead(f *testing.F) {
	f.Add([]byte(head))
	f.Add([]byte(head + "policy: {reserveAfter: 1s, placement: pack}\nwebhook: {url: \"https://localhost:1\"}\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("? {a: b}\n: c\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Read("f", text)
		if err != nil {
			return
		}
		if c.APIVersion != APIVersion || c.Policy.ReserveAfter <= 0 || len(c.Integrations.Frameworks) == 0 || !(c.Client.QPS > 0) {
			t.Fatalf("accepted %+v", c)
		}
	})
}
