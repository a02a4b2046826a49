// SPDX-License-Identifier: Apache-2.0

// Package internal_test enforces the layering of packages and other rules for the whole repository.
package internal_test

import (
	"bufio"
	"bytes"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "weir.dev/weir/"

// layer is a folder directly below internal. It may import itself, the standard library and what is listed.
type layer struct {
	// folders may be imported: api, config, or folders directly below internal.
	folders string
	// modules are prefixes of other modules' packages that may be imported.
	modules string
}

const (
	kubernetes = "k8s.io/ sigs.k8s.io/controller-runtime sigs.k8s.io/gateway-api/apis/v1 sigs.k8s.io/yaml "
	telemetry  = "go.opentelemetry.io/otel/attribute go.opentelemetry.io/otel/codes go.opentelemetry.io/otel/trace go.opentelemetry.io/otel/propagation "
)

// layers are in order: each folder imports only folders above it.
var layers = []struct {
	folder string
	layer
}{
	{"lb", layer{}},
	{"armerror", layer{}},
	{"zones", layer{}},
	{"humanize", layer{"armerror", ""}},
	{"service", layer{"lb zones", ""}},
	{"ratelimit", layer{"lb", ""}},
	{"requestlog", layer{}},
	{"leader", layer{"ratelimit", ""}},
	{"nic", layer{"armerror lb ratelimit", ""}},
	{"pool", layer{"armerror humanize lb nic ratelimit requestlog", ""}},
	{"loadbalancer", layer{"armerror lb pool ratelimit requestlog service zones", "golang.org/x/sync/errgroup"}},
	{"skumigration", layer{"armerror humanize lb loadbalancer nic ratelimit", "golang.org/x/sync/errgroup"}},
	{"config", layer{"lb pool ratelimit zones", "go.yaml.in/yaml/ sigs.k8s.io/yaml k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/util/validation"}},
	{"observe", layer{"armerror lb nic pool ratelimit requestlog", "github.com/prometheus/ go.opentelemetry.io/ golang.org/x/time/rate google.golang.org/protobuf/"}},
	{"azure", layer{"armerror lb leader pool ratelimit requestlog skumigration zones", telemetry + "github.com/Azure/ golang.org/x/ sigs.k8s.io/cloud-provider-azure/pkg/azclient/policy/retryrepectthrottled"}},
	{"k8s", layer{"api armerror humanize lb leader loadbalancer pool ratelimit service skumigration", kubernetes + "github.com/go-logr/logr golang.org/x/"}},
	{"controllers", layer{"api armerror humanize k8s lb loadbalancer nic pool ratelimit service skumigration", kubernetes}},
	{"provisioning", layer{"api humanize k8s leader ratelimit skumigration", kubernetes + telemetry + "go.yaml.in/yaml/ golang.org/x/ helm.sh/helm/ sigs.k8s.io/cli-utils/"}},
	{"offline", layer{"api controllers humanize k8s lb loadbalancer pool service", kubernetes + "github.com/evanphx/json-patch go.yaml.in/yaml/ sigs.k8s.io/json"}},
	{"app", layer{"api armerror azure config controllers humanize k8s lb leader loadbalancer nic observe offline pool provisioning ratelimit requestlog service skumigration zones",
		kubernetes + "github.com/go-logr/logr github.com/prometheus/ go.opentelemetry.io/ golang.org/x/"}},
	{"cli", layer{"api app armerror azure config controllers humanize k8s lb loadbalancer observe pool provisioning ratelimit requestlog service zones", kubernetes}},
}

// TestImportsOfLayers keeps the order of the folders below internal, so that they have no cycle.
func TestImportsOfLayers(t *testing.T) {
	imports := listImports(t)
	position := map[string]int{}
	for i, l := range layers {
		position[l.folder] = i
		for _, folder := range strings.Fields(l.folders) {
			if at, listed := position[folder]; folder != "api" && (!listed || at >= i) {
				t.Errorf("%s may import %s, which is not above it", l.folder, folder)
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		folder, inside := folderBelowInternal(pkg)
		if !inside {
			continue
		}
		at, listed := position[folder]
		if !listed {
			t.Errorf("%s: the folder internal/%s is not in layers", pkg, folder)
			continue
		}
		for _, path := range imports[pkg] {
			if !layers[at].mayImport(folder, path) {
				t.Errorf("%s imports %s, which layers do not allow for internal/%s", strings.TrimPrefix(pkg, module), path, folder)
			}
		}
	}
}

func (l layer) mayImport(own, path string) bool {
	if rest, managed := strings.CutPrefix(path, module); managed {
		folder, inside := folderBelowInternal(path)
		if !inside {
			folder, _, _ = strings.Cut(rest, "/")
		}
		return folder == own || slices.Contains(strings.Fields(l.folders), folder)
	}
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") || slices.ContainsFunc(strings.Fields(l.modules), func(m string) bool { return strings.HasPrefix(path, m) })
}

// folderBelowInternal returns the first folder below internal in the path of a package.
func folderBelowInternal(pkg string) (folder string, inside bool) {
	rest, inside := strings.CutPrefix(pkg, module+"internal/")
	folder, _, _ = strings.Cut(rest, "/")
	return folder, inside
}

// decisions are the packages that decide: no I/O, no context, no locks, no log; time is an argument.
var decisions = []string{
	"internal/armerror", "internal/controllers/gateways/routing", "internal/humanize", "internal/lb", "internal/loadbalancer/plan",
	"internal/loadbalancer/privatelink/desired", "internal/nic", "internal/pool/diff", "internal/pool/membership",
	"internal/pool/schedule", "internal/provisioning/policy", "internal/service", "internal/skumigration/phase",
}

// effects are packages below a decision package that act.
var effects = []string{"internal/nic/nicupdate"}

// workers act only through interfaces of their own: no network, no files.
var workers = []string{
	"internal/controllers/backendpools/backendpool", "internal/controllers/services/servicelb", "internal/leader", "internal/loadbalancer",
	"internal/nic/nicupdate", "internal/pool", "internal/ratelimit", "internal/skumigration",
}

// rule lists the imports forbidden to a package and its subpackages.
type rule struct {
	from   string
	forbid []string
	// except lists import paths that are allowed nevertheless.
	except []string
	why    string
}

func rules() []rule {
	var rules []rule
	for _, pkg := range decisions {
		rules = append(rules, rule{pkg, []string{"net", "os", "os/exec", "log", "log/slog", "context", "sync"}, nil, "it decides from values alone"})
	}
	for _, pkg := range workers {
		rules = append(rules, rule{pkg, []string{"net", "net/http", "os", "os/exec"}, nil, "it acts through interfaces of its own"})
	}
	for _, pkg := range []string{"api", "cmd", "config", "internal"} {
		rules = append(rules, rule{pkg, modulePaths("test"), nil, "test/ is for tests"})
	}
	for _, pkg := range []string{"test/controlplane", "test/referencepage", "test/transcript"} {
		rules = append(rules, rule{pkg, []string{module}, nil, "tests inside of any package use it"})
	}
	return append(rules,
		rule{"internal", modulePaths("lab", "cmd", "tools"), nil, "these are not shipped in the controller"},
		rule{"internal/controllers", []string{"github.com/Azure/"}, nil, "only internal/azure calls Azure"},
		rule{"internal/controllers/backendpools", modulePaths("internal/controllers/services", "internal/controllers/ownership", "internal/controllers/nodes"), nil, "controllers do not import each other"},
		rule{"internal/controllers/services", modulePaths("internal/controllers/nodes"), nil, "controllers do not import each other"},
		rule{"internal/controllers/services", modulePaths("internal/controllers/backendpools"), modulePaths("internal/controllers/backendpools/backendpool"), "controllers do not import each other"},
		rule{"internal/controllers/ownership", modulePaths("internal/controllers/services", "internal/controllers/nodes"), modulePaths("internal/controllers/services/servicelb"), "controllers do not import each other"},
		rule{"internal/controllers/nodes", modulePaths("internal/controllers/services", "internal/controllers/ownership"), nil, "controllers do not import each other"},
		rule{"internal/provisioning/charts", []string{module}, modulePaths("internal/provisioning/charts"), "it runs in a process of its own"},
		rule{"internal/observe/httpserver", []string{module}, nil, "each program serves HTTP through it"},
		rule{"internal/azure", []string{"go.opentelemetry.io/otel/sdk/", "go.opentelemetry.io/otel/exporters/"}, nil, "internal/observe/tracing exports spans"},
		rule{"lab/armemu", []string{"github.com/Azure/", "k8s.io/"}, nil, "the emulator checks what the SDK sends, so it does not use the SDK"},
		rule{"lab/apiserver", []string{module, "github.com/Azure/"}, nil, "the API server knows Kubernetes only"},
		rule{"lab/dataplane", []string{module, "github.com/Azure/"}, modulePaths("lab/armemu", "lab/dataplane"), "connections prove what the controller did without its code"},
		rule{"lab/process", []string{".", module}, nil, "it runs any program"},
		rule{"lab/badlink", []string{".", module}, nil, "it is a proxy for any server"},
		rule{"lab/demo", modulePaths("internal/pool", "internal/controllers", "internal/azure"), nil, "the checks of the demo share no code with the controller"},
		rule{"test/objects", []string{module}, modulePaths("api/v1alpha1"), "tests inside of any package use it"},
		rule{"tools/house", []string{".", module}, nil, "it measures any module"},
		rule{"tools/mutants", []string{".", module}, modulePaths("lab/simulate"), "it changes the code that the simulator runs"},
		rule{"config", []string{".", module}, nil, "it embeds files"},
		rule{"api", modulePaths("internal"), nil, "other modules import it"},
		rule{"cmd", []string{"github.com/Azure/"}, nil, "internal/app sets up Azure"},
	)
}

func modulePaths(packages ...string) []string {
	paths := make([]string, len(packages))
	for i, p := range packages {
		paths[i] = module + p
	}
	return paths
}

func TestForbiddenImports(t *testing.T) {
	imports := listImports(t)
	for _, r := range rules() {
		found := false
		for pkg, imported := range imports {
			if !isUnder(pkg, module+r.from) || hasOwnRule(r.from, pkg) {
				continue
			}
			found = true
			for _, path := range imported {
				if isForbidden(r, path) {
					t.Errorf("%s imports %s: %s", strings.TrimPrefix(pkg, module), path, r.why)
				}
			}
		}
		if !found {
			t.Errorf("a rule names %s, which has no package", r.from)
		}
	}
}

// hasOwnRule reports whether a package below a decision package or worker is listed itself.
func hasOwnRule(from, pkg string) bool {
	if !slices.Contains(slices.Concat(decisions, workers), from) {
		return false
	}
	return slices.ContainsFunc(slices.Concat(decisions, effects), func(e string) bool {
		return e != from && isUnder(e, from) && isUnder(pkg, module+e)
	})
}

// The controller links neither Helm, because of its advisories, nor the provisioning controller, nor the
// SDK's resource types, which drop unknown properties. The provisioner does not link the Azure SDK, so it
// cannot call Azure.
func TestProgramsLinkOnlyWhatTheyNeed(t *testing.T) {
	for program, forbidden := range map[string][]string{
		"cmd/weir":             {module + "lab/", "helm.sh/", module + "internal/provisioning/charts", "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/"},
		"cmd/weir-provisioner": {"github.com/Azure/", module + "internal/azure", module + "internal/config", module + "internal/controllers/services"},
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

// testModules are the modules of go.mod that no shipped program links. armnetwork is the SDK's view of Azure, which
// tests compare with the codec and the emulator.
var testModules = []string{
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9", "github.com/cockroachdb/datadriven",
	"github.com/google/go-cmp", "go.uber.org/goleak", "pgregory.net/rapid",
}

// TestGoModListsWhatShips keeps libraries of lab/ and tools/ that no shipped program links out of go.mod.
func TestGoModListsWhatShips(t *testing.T) {
	linked := listModules(t, "-deps", "-f", "{{if not .Standard}}{{with .Module}}{{.Path}}{{end}}{{end}}", module+"cmd/weir", module+"cmd/weir-provisioner")
	required := listModules(t, "-m", "-f", "{{if not (or .Main .Indirect)}}{{.Path}}{{end}}", "all")
	for _, m := range required {
		if ships, tests := slices.Contains(linked, m), slices.Contains(testModules, m); ships == tests {
			t.Errorf("go.mod requires %s: linked by a shipped program: %t; in testModules: %t", m, ships, tests)
		}
	}
	for _, m := range testModules {
		if !slices.Contains(required, m) {
			t.Errorf("testModules has %s, which go.mod does not require", m)
		}
	}
}

func listModules(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	return slices.Compact(modules)
}

func isForbidden(r rule, path string) bool {
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
	if len(imports) < 50 {
		t.Fatalf("go list names %d packages", len(imports))
	}
	return imports
}
