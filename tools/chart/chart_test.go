// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Helm installs the same objects as kubectl apply -k, except the Namespace, which Helm creates.
func TestChartMatchesConfig(t *testing.T) {
	for name, tt := range map[string]struct {
		values  string
		folders []string
	}{
		"by default": {"", []string{"."}},
		"with all of its options": {
			"{editRole: {enabled: true}, resourceLease: {enabled: true}, severalLoadBalancers: {enabled: true}, prometheus: {enabled: true}, page: {enabled: true}, provisioner: {enabled: true}}",
			[]string{".", "edit", "resource-lease", "several-load-balancers", "prometheus", "page", "provisioning"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := Render(t, namespace, tt.values)
			if err != nil {
				t.Fatal(err)
			}
			got, want := parseObjects(t, text), buildKustomize(t, tt.folders...)
			delete(want, "Namespace  "+namespace)
			if len(want) < 20 {
				t.Fatalf("only %d objects: is config/ still found?", len(want))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("config/ (-) and the chart (+) differ:\n%s", diff)
			}
		})
	}
}

// The provisioner has separate values that do not affect the controller. A value of an earlier release is
// rejected with a hint at its replacement, unless it is off.
func TestProvisionerValues(t *testing.T) {
	text, err := Render(t, namespace, "{image: {tag: v2}, provisioner: {enabled: true, repository: example.com/p, extraArgs: [--verbosity=1], goMemLimit: 900MiB, resources: {limits: {memory: 1Gi}}}, networkPolicy: {enabled: false}}")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`image: "example.com/p:v2"`, `- "--verbosity=1"`, `value: "900MiB"`, "memory: 1Gi"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if _, current := parseObjects(t, text)["NetworkPolicy "+namespace+" weir-provisioner"]; current {
		t.Error("there is a NetworkPolicy")
	}
	for key := range parseObjects(t, must(Render(t, namespace, "{provisioning: {enabled: false}}"))) {
		if strings.Contains(key, "provisioner") || strings.Contains(key, "weir-provisioning") {
			t.Errorf("%s is there by default", key)
		}
	}
	_, err = Render(t, namespace, "{provisioning: {enabled: true}}")
	if err == nil || !strings.Contains(err.Error(), "set provisioner.enabled=true") {
		t.Errorf("the old value: %v", err)
	}
}

func must(text string, err error) string {
	if err != nil {
		panic(err)
	}
	return text
}

// In another namespace nothing refers to the default one, including role subjects and the exemption in
// the admission policy.
func TestReleaseNamespace(t *testing.T) {
	const all = "{delayNodeDeletion: {enabled: true}, gatewayAPI: {enabled: true}, editRole: {enabled: true}, readinessGates: {enabled: true}, resourceLease: {enabled: true}, severalLoadBalancers: {enabled: true}, prometheus: {enabled: true}, provisioner: {enabled: true}, page: {enabled: true}}"
	text, err := Render(t, "balancing", all)
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(text, "\n---\n") {
		// CRDs are the same in every release: they name the namespace of a target's Weir, not of this one.
		if i := strings.Index(part, namespace); i >= 0 && !strings.Contains(part, "kind: CustomResourceDefinition\n") {
			t.Errorf("it speaks of %s: %q", namespace, part[max(0, i-80):min(len(part), i+80)])
		}
	}
	if !strings.Contains(text, "system:serviceaccount:balancing:weir") {
		t.Error("the policy does not know Weir")
	}
}

// A NetworkPolicy names client namespaces and ports; no pod may reach the health port.
func TestNetworkPoliciesNameTheClients(t *testing.T) {
	for _, tt := range []struct{ values, metrics, page string }{
		{"{page: {enabled: true}}", "monitoring", "ingress-nginx"},
		{"{page: {enabled: true}, networkPolicy: {metricsNamespace: '123', pageNamespace: web}}", "123", "web"},
	} {
		text, err := Render(t, namespace, tt.values)
		if err != nil {
			t.Fatal(err)
		}
		objects := parseObjects(t, text)
		for name, want := range map[string][2]string{"weir-controller": {tt.metrics, "metrics"}, "weir-page": {tt.page, "https"}} {
			spec := objects["NetworkPolicy "+namespace+" "+name]["spec"].(map[string]any)
			from := []any{map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": want[0]}}}}
			ports := []any{map[string]any{"protocol": "TCP", "port": want[1]}}
			if diff := cmp.Diff([]any{map[string]any{"from": from, "ports": ports}}, spec["ingress"]); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
}

func TestDisabledObjectsAreNotRendered(t *testing.T) {
	text, err := Render(t, namespace, "{podDisruptionBudget: {enabled: false}, networkPolicy: {enabled: false}, adminState: {enabled: false}, priorityClassName: ''}")
	if err != nil {
		t.Fatal(err)
	}
	for key := range parseObjects(t, text) {
		if strings.HasPrefix(key, "PodDisruptionBudget") || strings.HasPrefix(key, "NetworkPolicy") || strings.Contains(key, "admin-state") {
			t.Errorf("%s is there", key)
		}
	}
	if strings.Contains(text, "priorityClassName") {
		t.Error("a priority class is named")
	}
}

// Mistyped values, and values that could inject other fields, are rejected by name.
func TestInvalidValues(t *testing.T) {
	for name, tt := range map[string]struct{ values, wantText string }{
		"a mistyped key":          {"{replica: 3}", "replica"},
		"a mistyped key within":   {"{image: {tags: v1}}", "tags"},
		"a number as text":        {"{replicas: two}", "replicas"},
		"an argument, not a flag": {"{extraArgs: [controller]}", "extraArgs"},
		"more than a name":        {"{azureSecret: \"a\\n  b: c\"}", "azureSecret"},
		"no name of a namespace":  {"{networkPolicy: {metricsNamespace: \"*\"}}", "metricsNamespace"},
		"one of the page":         {"{networkPolicy: {pageNamespace: \"\"}}", "pageNamespace"},
		"a limit without a unit":  {"{goMemLimit: 460}", "goMemLimit"},
		"one of the provisioner":  {"{provisioner: {goMemLimit: 460}}", "goMemLimit"},
		"another key of it":       {"{provisioner: {enable: true}}", "enable"},
		"a digest without sha256": {"{image: {digest: 0123}}", "digest"},
		"a short digest":          {"{provisioner: {digest: 'sha256:01'}}", "digest"},
		"a secret without a name": {"{imagePullSecrets: [registry]}", "imagePullSecrets"},
		"a variable of the chart": {"{env: [{name: GOMEMLIMIT, value: 1GiB}]}", "env"},
		"another field of one":    {"{env: [{name: A, vale: b}]}", "vale"},
		"a label that selects":    {"{podLabels: {app.kubernetes.io/component: page}}", "podLabels"},
		"an annotation of Helm":   {"{podAnnotations: {helm.sh/hook: post-install}}", "podAnnotations"},
		"a name with a flag":      {"{clusterName: 'prod --x'}", "clusterName"},
		"a class with a space":    {"{loadBalancerClass: 'a b'}", "loadBalancerClass"},
		"no URL":                  {"{prometheus: {runbookURL: docs}}", "runbookURL"},
		"a URL with a quote":      {"{prometheus: {runbookURL: 'https://a\"b'}}", "runbookURL"},
	} {
		if _, err := Render(t, namespace, tt.values); err == nil || !strings.Contains(err.Error(), tt.wantText) {
			t.Errorf("%s: %v, want it named", name, err)
		}
	}
}

// With the value, the objects of config/readiness-gates are there, and the controller has its flag. Where the API
// server lacks the policy's kind, the message names the fix.
func TestReadinessGates(t *testing.T) {
	const enabled = "{readinessGates: {enabled: true}}"
	got, without := parseObjects(t, must(Render(t, namespace, enabled))), parseObjects(t, must(Render(t, namespace, "")))
	for key, want := range buildKustomize(t, "readiness-gates") {
		if diff := cmp.Diff(want, got[key]); diff != "" || without[key] != nil {
			t.Errorf("%s, there by default %t: %s", key, without[key] != nil, diff)
		}
	}
	if files := must(Render(t, namespace, enabled)); !strings.Contains(files, "- --readiness-gates\n") {
		t.Error("the controller has no flag")
	}
	_, _, err := renderFilesFor(t, chartDir, namespace, enabled, "v1.35.9")
	if err == nil || !strings.Contains(err.Error(), "Use Kubernetes 1.36 or later, or set readinessGates.enabled=false") {
		t.Errorf("an API server without the kind: %v", err)
	}
}
