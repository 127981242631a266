package sandbox

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/simulations/sandbox/certs"
)

// The users that the components and the person at the keyboard are.
var (
	adminUser      = certs.User{Name: "admin", User: "sandbox-admin", Groups: []string{"system:masters"}}
	controllerUser = certs.User{Name: "kube-controller-manager", User: "system:kube-controller-manager"}
	schedulerUser  = certs.User{Name: "kube-scheduler", User: "system:kube-scheduler"}
	kwokUser       = certs.User{Name: "kwok", User: "kwok"}
	users          = []certs.User{adminUser, controllerUser, schedulerUser, kwokUser}
)

const (
	etcdName       = "etcd"
	apiserverName  = "kube-apiserver"
	controllerName = "kube-controller-manager"
	schedulerName  = "kube-scheduler"
	kwokName       = "kwok"

	// etcdPeer is the name of the port that a lone etcd insists on.
	etcdPeer = "etcd-peer"

	serverCert  = "server"
	tokenKey    = "service-accounts"
	serviceCIDR = "10.0.0.0/24"
)

// serviceIP is the address of the service `kubernetes`, the first of serviceCIDR.
var serviceIP = net.IPv4(10, 0, 0, 1)

// component is one program of the control plane.
type component struct {
	name    string
	aliases []string
	// stage orders the start: all of one stage are healthy before the next
	// begins. They stop the other way round.
	stage int
	api   bool     // runs in mode API as well
	ports []string // the one under which it is asked for its health is its name
	grace time.Duration
	args  func(r *runner) []string
	// reads lists the files whose content changes what the program does.
	reads func(r *runner) []string
	// healthPath is what is asked, at scheme; the answer is 200 when it is well.
	scheme, healthPath string
}

// components are the programs, in the order of their start. An API server
// that is told to end while etcd is gone hangs, hence etcd ends last. While
// clients watch, it takes a minute to end; all that it holds is in etcd, so it
// is not waited for that long.
var components = []component{
	{
		name: etcdName, stage: 0, api: true, ports: []string{etcdName, etcdPeer}, grace: 10 * time.Second,
		scheme: "http", healthPath: "/health", args: etcdArgs,
	},
	{
		name: apiserverName, aliases: []string{"apiserver", "api"}, stage: 1, api: true, ports: []string{apiserverName},
		grace: 5 * time.Second, scheme: "https", healthPath: "/readyz", args: apiserverArgs,
		reads: func(r *runner) []string { return []string{r.box.auditPolicyPath(), r.ca.Cert("ca")} },
	},
	{
		name: controllerName, aliases: []string{"controller-manager", "kcm"}, stage: 2, ports: []string{controllerName},
		grace: 10 * time.Second, scheme: "https", healthPath: "/healthz", args: controllerArgs,
		reads: func(r *runner) []string { return []string{r.box.kubeconfigPath(controllerUser.Name)} },
	},
	{
		name: schedulerName, aliases: []string{"scheduler"}, stage: 2, ports: []string{schedulerName},
		grace: 10 * time.Second, scheme: "https", healthPath: "/healthz", args: schedulerArgs,
		reads: func(r *runner) []string { return []string{r.box.kubeconfigPath(schedulerUser.Name)} },
	},
	{
		name: kwokName, stage: 2, ports: []string{kwokName},
		grace: 10 * time.Second, scheme: "http", healthPath: "/healthz", args: kwokArgs,
		reads: func(r *runner) []string { return []string{r.box.kubeconfigPath(kwokUser.Name), r.box.kwokConfigPath()} },
	},
}

// in reports whether the component belongs to a mode.
func (c component) in(m Mode) bool { return m == All || c.api }

// lookup finds a component by its name or one of its short names.
func lookup(name string) (component, error) {
	for _, c := range components {
		if c.name == name || slices.Contains(c.aliases, name) {
			return c, nil
		}
	}
	return component{}, fmt.Errorf("unknown component %q; there are %s", name, strings.Join(ComponentNames(), ", "))
}

// ComponentNames lists the components in the order of their start.
func ComponentNames() []string {
	names := make([]string, len(components))
	for i, c := range components {
		names[i] = c.name
	}
	return names
}

// Artifacts names what a sandbox of a mode needs to be built.
func Artifacts(m Mode) ([]string, error) {
	if err := m.validate(); err != nil {
		return nil, err
	}
	var names []string
	for _, c := range components {
		if c.in(m) {
			names = append(names, c.name)
		}
	}
	if m == All {
		names = append(names, kwokModuleStages...)
	}
	return names, nil
}

func etcdArgs(r *runner) []string {
	client := "http://" + hostPort(r.st.Ports[etcdName])
	return []string{
		"--data-dir=" + r.box.etcdPath(),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=http://" + hostPort(r.st.Ports[etcdPeer]),
		// What a power cut may cost here is a sandbox.
		"--unsafe-no-fsync=true",
		"--log-level=warn",
	}
}

func apiserverArgs(r *runner) []string {
	args := []string{
		"--etcd-servers=http://" + hostPort(r.st.Ports[etcdName]),
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(r.st.Ports[apiserverName]),
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--tls-cert-file=" + r.ca.Cert(serverCert),
		"--tls-private-key-file=" + r.ca.Key(serverCert),
		"--client-ca-file=" + r.ca.Cert("ca"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + r.ca.Public(tokenKey),
		"--service-account-signing-key-file=" + r.ca.Key(tokenKey),
		"--allow-privileged=true",
	}
	if r.st.Settings.Mode == API {
		// Both wait for a controller that does not run: one for the service
		// account of every namespace, one for who takes the taint off new nodes.
		args = append(args, "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition")
	}
	if r.st.Settings.Audit {
		args = append(args, "--audit-policy-file="+r.box.auditPolicyPath(), "--audit-log-path="+r.box.LogPath("audit"))
	}
	return args
}

// controllers are those that a batch workload meets. The others watch kinds
// that nobody uses here.
var controllers = []string{
	"namespace-controller", "serviceaccount-controller", "root-ca-certificate-publisher-controller",
	"garbage-collector-controller", "pod-garbage-collector-controller", "job-controller", "daemonset-controller",
	"deployment-controller", "replicaset-controller", "statefulset-controller", "ttl-after-finished-controller",
	"node-lifecycle-controller", "taint-eviction-controller", "resourcequota-controller", "disruption-controller",
	"clusterrole-aggregation-controller", "validatingadmissionpolicy-status-controller",
}

func controllerArgs(r *runner) []string {
	return append(clientArgs(r, controllerUser.Name, controllerName, r.st.Settings.ControllerQPS),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+r.ca.Key(tokenKey),
		"--root-ca-file="+r.ca.Cert("ca"),
		"--concurrent-job-syncs=10",
		"--controllers="+strings.Join(controllers, ","),
	)
}

func schedulerArgs(r *runner) []string {
	return clientArgs(r, schedulerUser.Name, schedulerName, r.st.Settings.SchedulerQPS)
}

// clientArgs are what the controller manager and the scheduler share. Neither
// is given a kubeconfig to check others with: they would look for a
// request-header authority, which this API server does not have, without end.
func clientArgs(r *runner, user, port string, qps int) []string {
	return []string{
		"--kubeconfig=" + r.box.kubeconfigPath(user),
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(r.st.Ports[port]),
		"--tls-cert-file=" + r.ca.Cert(serverCert),
		"--tls-private-key-file=" + r.ca.Key(serverCert),
		"--leader-elect=false",
		"--kube-api-qps=" + strconv.Itoa(qps),
		"--kube-api-burst=" + strconv.Itoa(2*qps),
	}
}

func kwokArgs(r *runner) []string {
	return []string{
		"--kubeconfig=" + r.box.kubeconfigPath(kwokUser.Name),
		"--config=" + r.box.kwokConfigPath(),
		"--server-address=" + hostPort(r.st.Ports[kwokName]),
	}
}
