// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/conformance"
	conformancev1 "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/utils/config"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/test/controlplane"
)

var (
	rewrite = flag.Bool("rewrite", false, "write the report in docs/, with the suite's own limits of time")
	only    = flag.String("only", "", "run this test of the suite, without comparing the report")
)

const reportFile = "../../docs/reference/gateway-conformance.yaml"

// skipped are tests of core features. docs/reference/gateway-conformance.md lists them.
var skipped = slices.Concat(
	// Every listener of their valid Gateways uses HTTP or HTTPS: UnsupportedProtocol.
	[]string{
		"GatewayInvalidRouteKind", "GatewayInvalidTLSConfiguration", "GatewayListenerUnsupportedProtocol", "GatewayModifyListeners",
		"GatewayObservedGenerationBump", "GatewaySecretInvalidReferenceGrant", "GatewaySecretMissingReferenceGrant",
		"GatewaySecretReferenceGrantAllInNamespace", "GatewaySecretReferenceGrantSpecific", "TCPRouteInvalidNonTCPListener",
	},
	// Support for the field weight varies based on the context where it is used.
	[]string{"TCPRouteWeightedRouting", "UDPRouteWeightedRouting"},
)

func TestConformance(t *testing.T) {
	log.SetLogger(logr.Discard())
	l := startLab(t)
	opts := l.options()
	if *only != "" {
		opts.RunTest = *only
	}
	opts.ReportOutputPath = filepath.Join(t.TempDir(), "report.yaml")
	// The suite writes the report when its test ends.
	if !t.Run("Suite", func(t *testing.T) { conformance.RunConformanceWithOptions(t, opts) }) || *only != "" {
		return
	}
	if *rewrite {
		report, err := os.ReadFile(opts.ReportOutputPath)
		l.must(err)
		l.must(os.WriteFile(reportFile, report, 0o644)) //nolint:gosec // a document
		return
	}
	want, got := l.report(reportFile), l.report(opts.ReportOutputPath)
	want.Date, want.Version = got.Date, got.Version
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is not what this run reports; -rewrite writes it (-want +got):\n%s", reportFile, diff)
	}
}

// report returns a report in the order of names: that of the suite varies.
func (l *lab) report(file string) (r conformancev1.ConformanceReport) {
	l.t.Helper()
	raw, err := os.ReadFile(file)
	l.must(err)
	l.must(yaml.UnmarshalStrict(raw, &r))
	slices.SortFunc(r.ProfileReports, func(a, b conformancev1.ProfileReport) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range r.ProfileReports {
		slices.Sort(p.Core.SkippedTests)
		slices.Sort(p.Core.FailedTests)
	}
	return r
}

func (l *lab) options() suite.ConformanceOptions {
	l.t.Helper()
	scheme := clientgoscheme.Scheme
	l.must(errors.Join(gatewayv1.Install(scheme), apiextensionsv1.AddToScheme(scheme)))
	api, err := client.New(l.config, client.Options{Scheme: scheme})
	l.must(err)
	clientset, err := kubernetes.NewForConfig(l.config)
	l.must(err)
	files, err := manifests()
	l.must(err)
	l.awaitFeatures(api)
	return suite.ConformanceOptions{
		Client: api, ClientOptions: client.Options{Scheme: scheme}, Clientset: clientset, RestConfig: l.config,
		BaseManifests: baseManifests, ManifestFS: files,
		ConfigurableOptions: suite.ConfigurableOptions{
			GatewayClassName: "weir", CleanupTestResources: true, SkipTests: skipped, TimeoutConfig: timeouts(),
			ConformanceProfiles: []suite.ConformanceProfileName{suite.GatewayTCPConformanceProfileName, suite.GatewayUDPConformanceProfileName},
			Implementation: conformancev1.Implementation{
				Organization: "weir.dev", Project: "weir", URL: "https://weir.dev/weir", Version: "main", Contact: []string{"https://weir.dev/weir"},
			},
		},
	}
}

// awaitFeatures waits for the features that the GatewayClass reports: the suite infers from them what to run.
func (l *lab) awaitFeatures(api client.Client) {
	l.t.Helper()
	want := []string{"Gateway", "ReferenceGrant", "TCPRoute", "UDPRoute"}
	controlplane.Eventually(l.t, "supportedFeatures of the GatewayClass", 5*time.Minute, func() error {
		var class gatewayv1.GatewayClass
		if err := api.Get(l.t.Context(), client.ObjectKey{Name: "weir"}, &class); err != nil {
			return err
		}
		got := map[string]bool{}
		for _, f := range class.Status.SupportedFeatures {
			got[string(f.Name)] = true
		}
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
			return fmt.Errorf("%v, want %v", names, want)
		}
		return nil
	})
}

// timeouts are the suite's own for the report. Otherwise a busy machine gets more: the suite has no upper limit for most
// of them.
func timeouts() config.TimeoutConfig {
	timeouts := config.DefaultTimeoutConfig()
	if *rewrite {
		return timeouts
	}
	fields := reflect.ValueOf(&timeouts).Elem()
	for i := range fields.NumField() {
		if d, ok := fields.Field(i).Interface().(time.Duration); ok && d >= 10*time.Second {
			fields.Field(i).SetInt(int64(max(d, 5*time.Minute)))
		}
	}
	return timeouts
}
