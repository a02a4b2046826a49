// SPDX-License-Identifier: Apache-2.0

// Package internal_test enforces the layering of packages and other rules for the whole repository.
package internal_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "weir.dev/weir/"

// rule lists the imports forbidden to a package and its subpackages.
type rule struct {
	from   string
	forbid []string
	// except lists import paths that are allowed nevertheless.
	except []string
	why    string
}

const (
	k8s   = "k8s.io/"
	sigs  = "sigs.k8s.io/"
	azure = "github.com/Azure/"
)

var (
	ground = []string{"internal/lb", "internal/wholewrite", "internal/behaviour", "internal/fault", "internal/backoff", "internal/membership", "internal/nic", "internal/plan", "internal/nsg", "internal/turns", "internal/grant", "internal/bound", "internal/words", "internal/poolschedule", "internal/poolwrite", "internal/migrate", "internal/provision"}
	rooms  = []string{"internal/poolattempt", "internal/poolupdate", "internal/machinerules", "internal/servicelb", "internal/lease", "internal/service", "internal/balancer", "internal/adminstate", "internal/rehearse", "internal/removal", "internal/lead", "internal/probe", "internal/contest", "internal/publicip", "internal/leftpool", "internal/privateip", "internal/privatelink", "internal/securitygroup", "internal/backendpool", "internal/verdicts", "internal/pace", "internal/nicupdate", "internal/calls", "internal/once", "internal/sleep", "internal/migration", "internal/privatelinkround"}
	// adapters do I/O; only roof imports them.
	adapters = []string{"internal/azure", "internal/operator", "internal/kube", "lab/armemu", "lab/apiserver", "internal/metrics", "internal/tracing", "internal/httpserver"}
	roof     = []string{"internal/app", "internal/config", "lab/demo", "lab/scenario", "lab/simulate", "lab/cluster", "lab/process", "lab/lag", "lab/payload", "lab/scale", "lab/badlink"}
	// kubeRooms are the packages that internal/kube wires together; kubeLeaves are shared by all controllers.
	kubePackages       = append(slices.Clone(sharedKubePackages), "internal/kube/manifest", "internal/kube/view", "internal/kube/nodes", "internal/kube/record")
	sharedKubePackages = []string{"internal/kube/apiserver", "internal/kube/workqueue", "internal/kube/events", "internal/kube/leases"}
)

// allowedImports are Kubernetes packages that rooms may import: plain types without I/O. Status types are the
// API's own, so that they are not declared twice.
var allowedImports = map[string][]string{
	"internal/backendpool": {
		"k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/api/meta", "k8s.io/apimachinery/pkg/api/equality",
		"k8s.io/apimachinery/pkg/types", "k8s.io/apimachinery/pkg/labels",
	},
}

func rules() []rule {
	var all []rule
	for _, pkg := range ground {
		all = append(all,
			rule{pkg, []string{"."}, nil, "the ground floor imports the standard library and itself only"},
			rule{pkg, modulePaths(slices.Concat(rooms, adapters, roof)), nil, "the ground floor carries the house"},
			rule{pkg, []string{"net", "os", "log", "log/slog", "context", "sync"}, nil, "the ground floor does no I/O and shares nothing"})
	}
	for _, pkg := range rooms {
		all = append(all,
			rule{pkg, []string{"."}, append(allowedImports[pkg], "golang.org/x/sync/errgroup"), "rooms reach the outside only through interfaces of their own; calls side by side are none"},
			rule{pkg, modulePaths(slices.Concat(adapters, roof)), nil, "rooms do not know who serves them"},
			rule{pkg, []string{"net", "net/http", "os", "os/exec"}, nil, "rooms do no I/O"})
	}
	for _, pkg := range adapters {
		others := slices.DeleteFunc(slices.Clone(adapters), func(a string) bool { return a == pkg })
		all = append(all, rule{pkg, modulePaths(slices.Concat(others, roof)), nil, "adapters never import each other, nor the roof"})
	}
	for _, pkg := range sharedKubePackages {
		others := slices.DeleteFunc(slices.Clone(kubePackages), func(k string) bool { return k == pkg || k == "internal/kube/apiserver" })
		all = append(all, rule{pkg, modulePaths(others), nil, "it knows no controller, and of the other rooms only the way to the API server"})
	}
	for _, pkg := range []string{"api", "cmd", "config", "internal"} {
		all = append(all, rule{pkg, modulePaths([]string{"test"}), nil, "what is in test/ serves tests alone"})
	}
	all = append(all, rule{"tools/mutants", append(modulePaths(slices.Concat(rooms, adapters)), "."), nil, "it changes the rooms, and holds none but what the simulator plays"})
	all = append(all, rule{"tools/house", []string{".", module}, nil, "it measures any tree, and is part of none"})
	for _, pkg := range []string{"test/controlplane", "test/referencepage", "test/transcript"} {
		all = append(all, rule{pkg, []string{module}, nil, "tests of any room use it, those inside of a package too"})
	}
	return append(all,
		rule{"test/objects", []string{module}, []string{module + "api/v1alpha1"}, "tests of any room use it, those inside of a package too"},
		rule{"internal/privatelink", []string{"context", "sync", "log/slog", "io"}, nil, "the next step is decided from values alone"},
		rule{"internal/adminstate", []string{"context", "sync", "log/slog"}, nil, "which nodes drain is decided from values alone"},
		rule{"internal/rehearse/view", []string{"context", "sync", "log/slog", "io"}, nil, "data goes in, text comes out"},
		rule{"internal/azure", []string{k8s, sigs}, []string{"sigs.k8s.io/cloud-provider-azure/pkg/azclient/policy/retryrepectthrottled"}, "only kube speaks to Kubernetes"},
		rule{"internal/kube", []string{azure}, nil, "only azure speaks to Azure"},
		rule{"internal/kube/pools", modulePaths([]string{"internal/kube/services", "internal/kube/ownership"}), nil, "whose a pool is, and who of its Services hears of it, are ports of package backendpool"},
		rule{"internal/kube/services", modulePaths([]string{"internal/kube/pools"}), nil, "each has a port of its own for the other"},
		rule{"internal/kube/ownership", modulePaths([]string{"internal/kube/services", "internal/kube/pools", "internal/kube/events", "internal/kube/workqueue"}), nil, "whose a pool is is decided by who writes nothing"},
		rule{"internal/kube/nodes", modulePaths([]string{"internal/kube/services", "internal/kube/pools", "internal/kube/ownership"}), nil, "what becomes of Nodes is decided by who knows no pools"},
		rule{"internal/kube/record", modulePaths([]string{"internal/kube"}), []string{module + "internal/kube/record", module + "internal/kube/view", module + "internal/kube/apiserver"}, "it reads and writes one ConfigMap"},
		rule{"internal/kube/jobs", modulePaths([]string{"internal/kube"}), []string{module + "internal/kube/jobs"}, "it knows Jobs and their pods, and nobody's work queue"},
		rule{"internal/kube/migrations", modulePaths([]string{"internal/kube"}), []string{module + "internal/kube/migrations", module + "internal/kube/record"}, "it asks through the record, and knows no controller"},
		rule{"internal/kube/attemptlogs", modulePaths([]string{"internal/kube"}), []string{module + "internal/kube/attemptlogs", module + "internal/kube/apiserver"}, "it keeps texts, and makes no attempt"},
		rule{"internal/kube/charts", modulePaths([]string{"internal/kube"}), []string{module + "internal/kube/charts"}, "it renders in a process of its own, and reaches for nothing"},
		rule{"internal/kube/budget", modulePaths([]string{"internal/kube"}), []string{module + "internal/kube/budget"}, "it shares an amount, whatever it is of"},
		rule{"internal/kube/kubeconfig", modulePaths([]string{"internal"}), nil, "it judges a text, and reaches for nothing"},
		rule{"internal/kube/view", modulePaths([]string{"internal/kube"}), []string{module + "internal/kube/view"}, "what is seen knows nobody who looks or writes"},
		rule{"lab/armemu", []string{azure, k8s}, nil, "the emulator is a witness of its own of what the client encodes"},
		rule{"lab/apiserver", []string{module, azure}, nil, "the API server knows Kubernetes, and nothing of who uses it"},
		rule{"internal/tracing", []string{azure, k8s}, nil, "spans leave here, whoever makes them"},
		rule{"internal/azure", []string{"go.opentelemetry.io/otel/sdk/", "go.opentelemetry.io/otel/exporters/"}, nil, "who makes spans does not know where they go"},
		rule{"internal/config", []string{azure, k8s}, []string{"k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/util/validation"}, "a setting is a value; a label selector is Kubernetes'"},
		rule{"internal/httpserver", []string{".", module}, []string{"golang.org/x/time/rate"}, "any program serves by it"},
		rule{"internal/app/monitoring", []string{module}, []string{module + "internal/httpserver", module + "internal/kube/apiserver"}, "any program has health and metrics"},
		rule{"lab/process", []string{".", module}, nil, "it runs programs, and knows none"},
		rule{"lab/badlink", []string{".", module}, nil, "it is in front of any server, and knows none"},
		rule{"lab/demo", modulePaths([]string{"internal/membership", "internal/poolattempt", "internal/poolupdate", "internal/kube", "internal/azure"}), nil, "the demo's witness shares no code with what it watches"},
		rule{"config", []string{".", module}, nil, "files to embed, and nothing else"},
		rule{"api", modulePaths([]string{"internal"}), nil, "the API is for others to import"},
		rule{"cmd", []string{azure}, nil, "commands wire through internal/app"},
	)
}

func modulePaths(pkgs []string) []string {
	paths := make([]string, len(pkgs))
	for i, p := range pkgs {
		paths[i] = module + p
	}
	return paths
}

func TestForbiddenImports(t *testing.T) {
	imports := listImports(t)
	for _, r := range rules() {
		for pkg, imported := range imports {
			if !isUnder(pkg, module+r.from) {
				continue
			}
			for _, path := range imported {
				if forbidden(r, path) {
					t.Errorf("%s imports %s: %s", strings.TrimPrefix(pkg, module), path, r.why)
				}
			}
		}
	}
}

// The controller links neither Helm, because of its advisories, nor the provisioning controller, nor the
// SDK's resource types, which drop unknown properties. The provisioner does not link the Azure SDK, so it
// cannot call Azure.
func TestProgramsLinkOnlyWhatTheyNeed(t *testing.T) {
	for program, forbidden := range map[string][]string{
		"cmd/weir":             {"helm.sh/", module + "internal/kube/charts", module + "internal/kube/provisions", azure + "azure-sdk-for-go/sdk/resourcemanager/"},
		"cmd/weir-provisioner": {azure, module + "internal/azure", module + "internal/config", module + "internal/kube/services"},
	} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+program).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		linked := strings.Fields(string(out))
		if len(linked) < 100 {
			t.Fatalf("%s links %d packages: is it still found?", program, len(linked))
		}
		for _, path := range linked {
			for _, f := range forbidden {
				if strings.HasPrefix(path, f) {
					t.Errorf("%s links %s", program, path)
				}
			}
		}
	}
}

// TestEveryPackageHasRules fails if a package is in none of the lists above.
func TestEveryPackageHasRules(t *testing.T) {
	known := slices.Concat(ground, rooms, adapters, roof, []string{"api", "cmd", "config", "test", "tools", "internal"})
	for pkg := range listImports(t) {
		if !slices.ContainsFunc(known, func(k string) bool { return isUnder(pkg, module+k) && (k != "internal" || pkg == module+k) }) {
			t.Errorf("%s is in none of the lists of deps_test.go: say which floor it is on", pkg)
		}
	}
}

func forbidden(r rule, path string) bool {
	if slices.ContainsFunc(r.except, func(e string) bool { return isUnder(path, e) }) {
		return false
	}
	return slices.ContainsFunc(r.forbid, func(f string) bool {
		switch {
		case f == ".": // anything but the standard library and this module
			first, _, _ := strings.Cut(path, "/")
			return strings.Contains(first, ".") && !strings.HasPrefix(path, module)
		case strings.HasSuffix(f, "/"):
			return strings.HasPrefix(path, f)
		case strings.HasPrefix(f, module):
			return isUnder(path, f)
		}
		return path == f
	})
}

func isUnder(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}

// listImports returns the imports of every package, without those of its tests.
func listImports(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, module+"...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	imports := map[string][]string{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		imports[fields[0]] = fields[1:]
	}
	if len(imports) < len(ground) {
		t.Fatalf("go list names %d packages", len(imports))
	}
	return imports
}
