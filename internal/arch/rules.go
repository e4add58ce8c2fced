package arch

import "slices"

// Rule is the row of one package, or of a family of packages.
//
// A pattern is a folder relative to the root of the tree: `*` stands for one
// path element, and a final `/...` for the folder and all below it.
type Rule struct {
	// Folder is the pattern of the packages that the row is about.
	Folder string
	// May are patterns of our own packages that they may import.
	May []string
	// Tests are patterns that their test files may import besides.
	Tests []string
	// OwnModule says that the packages live in a go.mod of their own.
	OwnModule bool
	// Gives says in one line what the package is for.
	Gives string
}

// Limit says which packages may import a module of others. Path stands for
// that import path and all below it.
type Limit struct {
	Path string
	// Only are the patterns of the packages that may; none means nobody.
	Only []string
	Why  string
}

// Policy is everything that Check holds a tree to.
type Policy struct {
	// Module is the path of the root module; a folder's import path is this
	// and the folder, in nested modules too.
	Module string
	// Rules are searched in order: the first that fits a folder is its row.
	Rules []Rule
	// Tests are patterns that every test file may import.
	Tests []string
	// Limits hold for imports that are not ours.
	Limits []Limit
	// BadNames are words that no folder and no package may be called.
	BadNames []string
	// NotInRoot are module paths that the root go.mod must not require.
	NotInRoot []string
	// KubernetesMinor is what all staging modules of Kubernetes start with.
	KubernetesMinor string
	// Peers are folders of modules that pin what we are measured beside, in the
	// versions that it has.
	Peers []string
	// MaxLines bounds the code of a folder, tests left out.
	MaxLines map[string]int
}

// The groups of DESIGN.md. The client half and the server half meet only in
// evenkeeltest, cli and cmd.
var (
	clientHalf  = []string{"client", "cache", "informer", "workqueue", "events", "leader", "controller", "manager", "webhook", "explore"}
	serverHalf  = []string{"storage", "storage/embedded", "storage/etcd", "storage/storagetest", "server", "server/*"}
	controllers = []string{"controllers", "controllers/*", "scheduler", "node", "node/*"}
	tooling     = []string{"codegen", "scaffold", "console"}

	bothHalves = slices.Concat(clientHalf, serverHalf, controllers)
	public     = slices.Concat(bothHalves, tooling, []string{"evenkeeltest", "evenkeeltest/controlplane", "cli"})
)

// Evenkeel is the policy of this repository.
var Evenkeel = Policy{
	Module: "github.com/even-keel/evenkeel",
	Rules: []Rule{
		{Folder: "client", Tests: []string{"server/kinds"},
			Gives: "typed, dynamic and metadata-only clients; configuration"},
		{Folder: "cache", Gives: "immutable indexed snapshots; no goroutine, no I/O"},
		{Folder: "informer", May: []string{"client", "cache"},
			Tests: []string{"workqueue"},
			Gives: "reflector, deltas, shared informer, factory"},
		{Folder: "workqueue", Gives: "one queue: dedupe, delay, backoff, priority, fairness, causes"},
		{Folder: "events", May: []string{"client"}, Gives: "event recorder with aggregation"},
		{Folder: "leader", May: []string{"client"}, Tests: []string{"storage"}, Gives: "election by Lease"},
		{Folder: "controller", May: []string{"client", "cache", "informer", "workqueue", "events"},
			Gives: "reconciler, result, builder, sources, predicates, helpers"},
		{Folder: "manager", May: []string{"client", "cache", "informer", "workqueue", "events", "leader", "controller"},
			Gives: "runs controllers, election, health, metrics"},
		{Folder: "webhook", May: []string{"client"}, Tests: []string{"leader", "manager", "test/peer"},
			Gives: "a server of admission and conversion webhooks, and their registration"},
		{Folder: "explore", May: without(clientHalf, "explore"),
			Gives: "the fault explorer for a controller author's tests"},

		{Folder: "storage", Gives: "the contract of a store: bytes under a revision"},
		{Folder: "storage/embedded", May: []string{"storage"}, Gives: "the store of one machine, on Pebble"},
		{Folder: "storage/etcd", May: []string{"storage"}, Gives: "the store of several servers, on an etcd cluster"},
		{Folder: "storage/storagetest", May: []string{"storage"}, Gives: "the suite that every engine passes"},

		{Folder: "server/patch", Gives: "pure: the four patch types, apply"},
		{Folder: "server/schema", Gives: "pure: defaulting, pruning, validation"},
		{Folder: "server/watch", May: []string{"storage"}, Tests: []string{"storage/embedded"}, Gives: "the hub: one log of encoded events per resource"},
		{Folder: "server/auth", Gives: "authenticators, RBAC"},
		{Folder: "server/bootstrap", Gives: "pure: the objects of a new cluster: namespaces, roles, the server's service"},
		{Folder: "server/custom", May: []string{"server/kinds", "server/schema"}, Gives: "kinds made of custom resource definitions"},
		{Folder: "server/webhook", Gives: "the client of webhooks; conversion of custom resources by them"},
		{Folder: "server/admission", Gives: "the admission chain, webhooks, policies"},
		{Folder: "server/kinds", May: []string{"server/schema"},
			Gives: "the built-in kinds: defaults, validation, columns, subresources"},
		{Folder: "server/discovery", May: []string{"server/kinds"},
			Gives: "pure: the documents that tell clients what is served"},
		{Folder: "server/openapi", May: []string{"server/kinds"},
			Gives: "pure: the OpenAPI documents, made from the types of the kinds"},
		{Folder: "server/openapi/factgen", Gives: "the generator of what server/openapi knows of the types' sources"},
		{Folder: "server/plain", Gives: "pure: reads JSON of API types about which there is nothing to say"},
		{Folder: "server/gather", Gives: "connections that send what a handler writes in few calls of the system"},
		{Folder: "server/h2", Gives: "HTTP/2 whose handlers write their frames themselves"},
		{Folder: "server/rest", May: []string{"storage", "server/*"}, Tests: []string{"storage/embedded"},
			Gives: "verbs, negotiation, discovery, OpenAPI, streaming"},
		{Folder: "server", May: []string{"storage", "server/*"}, Tests: []string{"storage/embedded", "storage/etcd"}, Gives: "the API server, put together"},

		{Folder: "controllers/pods", May: []string{"client", "controller", "informer"},
			Gives: "what controllers of pods have in common: when a pod is up, how pods are made, which are on a node"},
		{Folder: "controllers/services", May: []string{"client", "controller", "informer", "controllers/pods"},
			Gives: "what controllers of endpoints have in common: which pods serve, how slices are filled"},
		{Folder: "controllers/podstest", May: []string{"client", "controller", "evenkeeltest"},
			Gives: "plays the scheduler and the kubelets in tests of controllers"},
		{Folder: "controllers/revision", May: []string{"client"},
			Gives: "the history of pod templates, in ControllerRevisions"},
		{Folder: "controllers/*", May: append(without(clientHalf, "manager", "explore"), "controllers/pods", "controllers/revision", "controllers/services"), Tests: []string{"explore", "controllers/*"},
			Gives: "a built-in controller each"},
		{Folder: "controllers", May: []string{"client", "events", "controller", "controllers/*"},
			Gives: "the list of the built-in controllers, for programs that run them"},
		{Folder: "scheduler", May: without(clientHalf, "manager", "explore"), Tests: []string{"explore"},
			Gives: "places pods on nodes"},
		{Folder: "node/remote", Gives: "the protocols of exec, attach and port-forward"},
		{Folder: "node", May: append(without(clientHalf, "manager", "explore"), "node/remote"), Tests: []string{"explore", "node/simulated"},
			Gives: "the node agent"},
		{Folder: "node/runtimetest", May: []string{"client", "node", "node/remote"}, Gives: "the suite that every runtime passes"},
		{Folder: "node/simulated", May: []string{"client", "node"}, Tests: []string{"node/runtimetest"},
			Gives: "a runtime in which nothing runs: pods live by the clock"},
		{Folder: "node/process", May: []string{"client", "node", "node/remote"}, Tests: slices.Concat(without(clientHalf, "manager", "explore"), []string{"node/runtimetest"}),
			Gives: "a runtime that runs containers' commands as local processes"},

		{Folder: "codegen", Gives: "generators"},
		{Folder: "scaffold", Gives: "project scaffolds"},
		{Folder: "console", Gives: "embeds the web page; talks to the public HTTP API only"},

		{Folder: "evenkeeltest", May: bothHalves, Gives: "a real server in the test's own process"},
		{Folder: "evenkeeltest/controlplane", May: slices.Concat(clientHalf, controllers, []string{"evenkeeltest"}),
			Gives: "controllers, scheduler and simulated nodes for the server of a test"},
		{Folder: "cli", May: slices.Concat(public, []string{"cli/kubectl"}), Gives: "the subcommands"},
		{Folder: "cli/kubectl", May: []string{"cli/kubectl/language"}, Gives: "the real kubectl"},
		{Folder: "cli/kubectl/language", Gives: "kubectl's translations, kept out of the start of everything else"},
		{Folder: "cmd/evenkeel", May: slices.Concat(public, []string{"cli/kubectl/language"}), Gives: "the binary: signals and an exit code around cli"},

		{Folder: "internal/arch", Gives: "this table, as a test"},
		{Folder: "examples/...", May: slices.Concat(public, []string{"examples/...", "test/peer"}),
			Gives: "whole programs"},
		{Folder: "test/compat/...", May: slices.Concat(public, []string{"test/compat/...", "test/storage/etcdtest", "test/wire", "test/peer"}), OwnModule: true,
			Gives: "the ecosystem's clients as tests of our server"},
		{Folder: "test/kubectl/greeter", OwnModule: true, Gives: "a small program that pods run in the scripts"},
		{Folder: "test/kubectl", May: []string{"cli"}, OwnModule: true,
			Gives: "scripts with the real kubectl, as an operator would type them"},
		{Folder: "test/storage/etcdtest", OwnModule: true,
			Gives: "etcd clusters in the test's own process"},
		{Folder: "test/storage/...", May: []string{"storage", "storage/*", "test/storage/..."}, OwnModule: true,
			Gives: "both engines against real etcd, crashes and a linearizability checker"},
		{Folder: "test/wire", Tests: []string{"server", "server/*", "storage", "storage/*"}, Gives: "recorded answers of kube-apiserver, replayed"},
		{Folder: "test/peer", May: []string{"server/auth"}, Gives: "kube-apiserver and etcd, for tests that hold us against them"},
		{Folder: "test/...", May: slices.Concat(public, []string{"test/..."}),
			Gives: "conformance, chaos"},
		{Folder: "bench/...", May: slices.Concat(public, []string{"bench/...", "test/storage/etcdtest"}), OwnModule: true,
			Gives: "the peers, measured side by side with us"},
		{Folder: "tools/...", OwnModule: true, Gives: "the versions of the tools that make check runs"},
	},
	Tests: []string{"storage/storagetest", "evenkeeltest"},
	Limits: []Limit{
		{Path: "k8s.io/apiserver/pkg/server", Only: []string{"bench/...", "test/compat/..."},
			Why: "the generic server is what we replace"},
		{Path: "k8s.io/apiserver/pkg/registry", Only: []string{"bench/...", "test/compat/..."},
			Why: "the generic registry is what we replace"},
		{Path: "k8s.io/kubernetes", Only: []string{"bench/...", "test/compat/..."},
			Why: "it is not meant to be imported and pulls in everything"},
		{Path: "github.com/cockroachdb/pebble", Only: []string{"storage/embedded", "test/...", "bench/..."},
			Why: "only one engine knows its files"},
		{Path: "go.etcd.io/etcd", Only: []string{"storage/etcd", "test/...", "bench/..."},
			Why: "it brings gRPC along; only one engine talks to etcd"},
		{Path: "k8s.io/kubectl/pkg/cmd", Only: []string{"cli/kubectl", "test/...", "bench/..."},
			Why: "it costs every program that it is linked into: docs/adr/0009"},
		{Path: "github.com/spf13/cobra", Only: []string{"cli"},
			Why: "a library has no command line"},
	},
	BadNames: []string{"util", "utils", "common", "pkg"},
	NotInRoot: []string{
		"github.com/anishathalye/porcupine",
		"go.etcd.io/etcd/server",
		"honnef.co/go/tools",
		"k8s.io/kubernetes",
		"sigs.k8s.io/controller-runtime",
	},
	KubernetesMinor: "v0.37.",
	Peers:           []string{"bench/peer"},
	MaxLines:        map[string]int{"cmd/evenkeel": 99},
}

func without(patterns []string, not ...string) []string {
	return slices.DeleteFunc(slices.Clone(patterns), func(p string) bool { return slices.Contains(not, p) })
}
