package config

import (
	"slices"
	"time"
)

// The only version of the file there is so far.
const (
	APIVersion = "config.sluice.dev/v1alpha1"
	Kind       = "Configuration"
)

// Configuration is the controller's configuration file. Read and Default
// return it complete: no field is left for the reader of a value to default.
type Configuration struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`

	// Namespace is where sluice itself lives: its lease, its certificates. Its
	// objects are never queued.
	Namespace string `yaml:"namespace"`

	Policy         Policy         `yaml:"policy"`
	Integrations   Integrations   `yaml:"integrations"`
	Webhook        Webhook        `yaml:"webhook"`
	Journal        Journal        `yaml:"journal"`
	LeaderElection LeaderElection `yaml:"leaderElection"`
	Client         Client         `yaml:"client"`
	// Submit is what becomes of what can be known at submit, of the devices that pods
	// ask for.
	Submit Submit `yaml:"submit"`
	// LabelPolicies are labels that nodes should have.
	LabelPolicies []LabelPolicy `yaml:"labelPolicies"`
	Metrics       Metrics       `yaml:"metrics"`
	Health        Health        `yaml:"health"`
	API           API           `yaml:"api"`
}

// Placement is how the nodes of a gang are chosen among those that fit.
type Placement string

// PlacementPack fills the fullest device and the fullest node that still fit,
// so that large holes stay whole.
const PlacementPack Placement = "pack"

// Policy is what the cycle follows. The keys and defaults are those of a
// scenario file's `policy`.
type Policy struct {
	// ReserveAfter is how long the head of a queue may be blocked before nodes
	// are reserved for it.
	ReserveAfter time.Duration `yaml:"reserveAfter"`
	// RecoveryWindow is how long an admitted gang may stay below its minimum
	// before it is taken back whole.
	RecoveryWindow time.Duration `yaml:"recoveryWindow"`
	// MinRuntime is how long a gang runs before it may be taken back for others.
	MinRuntime time.Duration `yaml:"minRuntime"`
	Placement  Placement     `yaml:"placement"`
	// GrowEvery is how often an elastic gang below its full size tries to grow.
	GrowEvery time.Duration `yaml:"growEvery"`
	// HalfLife lets what queues used of late join their shares where the order is
	// decided: it counts half after that long. 0 forgets at once.
	HalfLife time.Duration `yaml:"halfLife"`
	// Reservations is for how many blocked claims room is reserved. 1 is what is
	// called EASY backfill, more is conservative.
	Reservations int `yaml:"reservations"`
	// FairReclaim lets borrowers take back from borrowers with the larger share.
	FairReclaim bool `yaml:"fairReclaim"`
	// UserKey is the label or annotation of a Workload, or of its pods, that names
	// the user it counts for.
	UserKey string `yaml:"userKey"`
}

// Submit is what is done about pods that ask for devices in a way in which they can
// never start, or will disappoint.
type Submit string

// The values of Submit.
const (
	SubmitWarn   Submit = "warn"   // say so
	SubmitRefuse Submit = "refuse" // refuse what can never start, and say the rest
	SubmitSilent Submit = "silent" // nothing
)

// LabelPolicy says which labels the nodes with other labels should have.
type LabelPolicy struct {
	Name string `yaml:"name"`
	// Selector is the labels by which it knows its nodes, all of them.
	Selector map[string]string `yaml:"selector"`
	Labels   map[string]string `yaml:"labels"`
	// Enforce has them put back; else it is only said that they are missing. The
	// controller may change nodes only if it is allowed to.
	Enforce bool `yaml:"enforce"`
}

// Integrations names the kinds of job that can be queued.
type Integrations struct {
	// Frameworks are integration names, as `batch/job` and `pod`. One whose CRD is
	// not there waits for it. The default is all of them.
	Frameworks []string `yaml:"frameworks"`
	// Kinds are kinds that no integration is for.
	Kinds []JobKind `yaml:"kinds"`
	// Volcano queues Volcano's PodGroups and takes over pods that ask for its scheduler,
	// which must not run then. The webhooks must be on.
	Volcano bool `yaml:"volcano"`
}

// JobKind says where in the objects of a kind the things are that a queue has to
// know. Paths are fields with dots between them, as spec.template.
type JobKind struct {
	// APIVersion is GROUP/VERSION.
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	// Resource is the plural; empty means the kind in lower case and an s.
	Resource string `yaml:"resource"`
	// Suspend is the path of a boolean: while it is true there are no pods.
	Suspend   string       `yaml:"suspend"`
	PodSets   []JobPodSet  `yaml:"podSets"`
	Succeeded []JobOutcome `yaml:"succeeded"`
	Failed    []JobOutcome `yaml:"failed"`
	// Active is the path of the number of pods that run; empty counts them.
	Active string `yaml:"active"`
}

// JobPodSet says where the pods of one role, or with Each of several, are described.
type JobPodSet struct {
	// Name of the pod set, main if empty; with Each the path of its name within an
	// element, its key in the mapping if empty.
	Name string `yaml:"name"`
	// Each is the path of a list or mapping with one element a role. The paths below
	// start at the element then.
	Each     string `yaml:"each"`
	Template string `yaml:"template"`
	// Count and MinCount are paths of numbers; empty means one, and all.
	Count    string `yaml:"count"`
	MinCount string `yaml:"minCount"`
}

// JobOutcome is a condition that is True, or a path with one of some values.
type JobOutcome struct {
	Condition string   `yaml:"condition"`
	Path      string   `yaml:"path"`
	Values    []string `yaml:"values"`
}

// Webhook says where the admission webhooks listen and how the API server
// reaches them.
type Webhook struct {
	// Enabled false starts nothing and installs nothing. A Job that its owner
	// did not suspend then starts before sluice can stop it.
	Enabled bool `yaml:"enabled"`
	// Host is the address to listen on; empty means all.
	Host string `yaml:"host"`
	Port int    `yaml:"port"`
	// CertDir holds tls.crt and tls.key. It is written by the controller unless
	// RotateCertificates is false.
	CertDir string `yaml:"certDir"`
	// RotateCertificates false leaves CertDir to someone else, who must put
	// tls.crt, tls.key and ca.crt there.
	RotateCertificates bool `yaml:"rotateCertificates"`
	// URL, if set, is how the API server reaches the webhooks: https, a host
	// name (a certificate made here names no IP address), a port. Empty means
	// through Service.
	URL     string         `yaml:"url"`
	Service WebhookService `yaml:"service"`
}

// WebhookService is a Service in Configuration.Namespace.
type WebhookService struct {
	Name string `yaml:"name"`
	Port int    `yaml:"port"`
}

// Journal is the file that holds decisions until they are settled.
type Journal struct {
	Path string `yaml:"path"`
}

// LeaderElection lets several replicas stand by while one decides.
type LeaderElection struct {
	Enabled       bool          `yaml:"enabled"`
	ResourceName  string        `yaml:"resourceName"`
	LeaseDuration time.Duration `yaml:"leaseDuration"`
	RenewDeadline time.Duration `yaml:"renewDeadline"`
	RetryPeriod   time.Duration `yaml:"retryPeriod"`
}

// Client bounds the requests to the API server, for each kind of object. A gang
// of n pods costs n patches, so the usual limits of a client would be the
// speed of admission.
type Client struct {
	QPS   float32 `yaml:"qps"`
	Burst int     `yaml:"burst"`
}

// Metrics is where metrics are served; "0" means nowhere.
type Metrics struct {
	BindAddress string `yaml:"bindAddress"`
}

// Health is where /healthz and /readyz are served; "0" means nowhere.
type Health struct {
	BindAddress string `yaml:"bindAddress"`
}

// API is where questions are answered over TLS, to users that the API server knows; "0"
// means nowhere. People reach it through the API server's proxy to the Service sluice-api.
type API struct {
	BindAddress string `yaml:"bindAddress"`
}

// Default returns the configuration of an empty file.
func Default() Configuration {
	return Configuration{
		APIVersion: APIVersion,
		Kind:       Kind,
		Namespace:  "sluice-system",
		Submit:     SubmitWarn,
		Policy: Policy{
			ReserveAfter:   2 * time.Minute,
			RecoveryWindow: time.Minute,
			Placement:      PlacementPack,
			GrowEvery:      30 * time.Second,
			Reservations:   100,
			FairReclaim:    true,
			UserKey:        "sluice.dev/user",
		},
		Integrations: Integrations{Frameworks: slices.Clone(Frameworks), Kinds: []JobKind{}},
		Webhook: Webhook{
			Enabled:            true,
			Port:               9443,
			CertDir:            "/var/lib/sluice/certs",
			RotateCertificates: true,
			Service:            WebhookService{Name: "sluice-webhook", Port: 443},
		},
		Journal: Journal{Path: "/var/lib/sluice/journal.db"},
		LeaderElection: LeaderElection{
			ResourceName: "sluice-controller",
			// A leader that is gone is followed within 10 s and one retry, 14 s at worst.
			LeaseDuration: 10 * time.Second,
			RenewDeadline: 7 * time.Second,
			RetryPeriod:   1500 * time.Millisecond,
		},
		Client:        Client{QPS: 500, Burst: 1000},
		LabelPolicies: []LabelPolicy{},
		Metrics:       Metrics{BindAddress: ":8080"},
		Health:        Health{BindAddress: ":8081"},
		API:           API{BindAddress: "0"},
	}
}
