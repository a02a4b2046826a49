// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"sigs.k8s.io/yaml"
)

// EveryValue sets each value of the chart to another one than its default.
const EveryValue = `
image: {repository: registry.example.com/weir, tag: v2, digest: "sha256:0123456789012345678901234567890123456789012345678901234567890123", pullPolicy: Always}
imagePullSecrets: [{name: registry}]
replicas: 3
clusterName: prod
loadBalancerClass: ""
azureSecret: other-azure
extraArgs: [--verbosity=1]
env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}, {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
serviceAccount: {annotations: {azure.workload.identity/client-id: 11111111-2222-3333-4444-555555555555}}
podLabels: {azure.workload.identity/use: "true"}
podAnnotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: "true"}
resources: {requests: {cpu: 100m, memory: 256Mi}, limits: {memory: 1Gi}}
goMemLimit: 900MiB
priorityClassName: system-node-critical
nodeSelector: {kubernetes.io/os: linux}
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.azure.com/mode, operator: In, values: [system]}]}]}}}
tolerations: [{key: CriticalAddonsOnly, operator: Exists}]
topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app.kubernetes.io/component: controller}}}]
podDisruptionBudget: {enabled: false}
networkPolicy: {enabled: true, metricsNamespace: observability, pageNamespace: web}
adminState: {enabled: false}
gatewayAPI: {enabled: true}
delayNodeDeletion: {enabled: true}
readinessGates: {enabled: true}
resourceLease: {enabled: true}
severalLoadBalancers: {enabled: true}
provisioner:
  enabled: true
  repository: registry.example.com/weir-provisioner
  digest: "sha256:3210987654321098765432109876543210987654321098765432109876543210"
  extraArgs: [--verbosity=1]
  env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
  resources: {requests: {cpu: 50m}, limits: {memory: 1Gi}}
  goMemLimit: 800MiB
editRole: {enabled: true}
page: {enabled: true}
prometheus: {enabled: true, labels: {release: kube-prometheus-stack}, runbookURL: "https://wiki.example.com/weir/"}
`

// Each value of the schema is in EveryValue, and has an effect: without it something else is rendered.
func TestEachValueHasAnEffect(t *testing.T) {
	with, err := Render(t, namespace, EveryValue)
	if err != nil {
		t.Fatal(err)
	}
	var values, schema map[string]any
	raw, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(EveryValue), &values); err != nil {
		t.Fatal(err)
	}
	tested := 0
	var visit func(schema, in map[string]any, path string)
	visit = func(schema, in map[string]any, path string) {
		properties := schema["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			of, path := properties[name].(map[string]any), strings.TrimPrefix(path+"."+name, ".")
			value, set := in[name]
			switch {
			case path == "global" || of["deprecated"] == true:
				continue
			case !set:
				t.Errorf("%s is not in EveryValue", path)
				continue
			case of["description"] == nil:
				visit(of, value.(map[string]any), path)
				continue
			}
			tested++
			delete(in, name)
			given, err := json.Marshal(values)
			in[name] = value
			if err != nil {
				t.Fatal(err)
			}
			without, err := Render(t, namespace, string(given))
			// networkPolicy.enabled is set to its default, so that the other two have an effect.
			if (err != nil || without == with) && path != "networkPolicy.enabled" {
				t.Errorf("%s has no effect: %v", path, err)
			}
		}
	}
	visit(schema, values, "")
	if tested < 35 {
		t.Errorf("only %d values", tested)
	}
}

// All pods have the fields for their placement and image; the rest is the controller's.
func TestValuesOfPods(t *testing.T) {
	text, err := Render(t, namespace, EveryValue)
	if err != nil {
		t.Fatal(err)
	}
	objects := parseObjects(t, text+"\n---\n"+RenderTest(t, namespace, EveryValue))
	const digest = "@sha256:0123456789012345678901234567890123456789012345678901234567890123"
	for of, image := range map[string]string{
		"weir-controller":  "registry.example.com/weir:v2" + digest,
		"weir-page":        "registry.example.com/weir:v2" + digest,
		"weir-provisioner": "registry.example.com/weir-provisioner:v2@sha256:3210987654321098765432109876543210987654321098765432109876543210",
		"weir-test":        "registry.example.com/weir:v2" + digest,
	} {
		spec := podSpec(t, objects, of)
		container := spec["containers"].([]any)[0].(map[string]any)
		if container["image"] != image || container["imagePullPolicy"] != "Always" {
			t.Errorf("%s: image %v, %v", of, container["image"], container["imagePullPolicy"])
		}
		for _, field := range []string{"imagePullSecrets", "nodeSelector", "affinity", "tolerations", "securityContext"} {
			if spec[field] == nil {
				t.Errorf("%s has no %s", of, field)
			}
		}
	}
	container := podSpec(t, objects, "weir-controller")["containers"].([]any)[0].(map[string]any)
	want := []any{
		"controller", "--config=/etc/weir/azure.json", "--metrics-bind-address=:8443", "--metrics-secure", "--health-probe-bind-address=:8081",
		"--cluster-name=prod", "--load-balancer-class=", "--gateway-api", "--delay-node-deletion", "--readiness-gates", "--verbosity=1",
	}
	if diff := cmp.Diff(want, container["args"]); diff != "" {
		t.Errorf("arguments: %s", diff)
	}
	if env := container["env"].([]any); len(env) != 3 {
		t.Errorf("env %v", env)
	}
	for _, invalid := range []string{
		"{clusterName: prod, extraArgs: [--cluster-name=other]}", "{loadBalancerClass: a/b, extraArgs: [--load-balancer-class=]}",
	} {
		if _, err := Render(t, namespace, invalid); err == nil || !strings.Contains(err.Error(), "remove one") {
			t.Errorf("%s: %v", invalid, err)
		}
	}
}

func podSpec(t *testing.T, values map[string]map[string]any, name string) map[string]any {
	t.Helper()
	if pod := values["Pod "+namespace+" "+name]; pod != nil {
		return pod["spec"].(map[string]any)
	}
	deployment := values["Deployment "+namespace+" "+name]
	if deployment == nil {
		t.Fatalf("no %s", name)
	}
	return deployment["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
}

// The objects of the Prometheus Operator have only fields that it knows. The PodMonitor's token is in a
// Secret that the chart creates, of an account that may read metrics; each alert has its runbook's URL.
func TestPrometheus(t *testing.T) {
	text, err := Render(t, "balancing", "{prometheus: {enabled: true, labels: {release: p}, runbookURL: 'https://wiki.example.com/weir/'}}")
	if err != nil {
		t.Fatal(err)
	}
	objects := parseObjects(t, text)
	var monitor monitoringv1.PodMonitor
	var rules monitoringv1.PrometheusRule
	for key, to := range map[string]any{"PodMonitor balancing weir-controller": &monitor, "PrometheusRule balancing weir": &rules} {
		raw, err := json.Marshal(objects[key])
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(to); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if monitor.Labels["release"] != "p" || rules.Labels["release"] != "p" {
		t.Errorf("labels %v, %v", monitor.Labels, rules.Labels)
	}
	credentials := monitor.Spec.PodMetricsEndpoints[0].Authorization.Credentials
	secret := objects["Secret balancing "+credentials.Name]
	if secret == nil || secret["type"] != "kubernetes.io/service-account-token" || credentials.Key != "token" {
		t.Fatalf("the token is key %s of Secret %s: %v", credentials.Key, credentials.Name, secret)
	}
	account := secret["metadata"].(map[string]any)["annotations"].(map[string]any)["kubernetes.io/service-account.name"].(string)
	if objects["ServiceAccount balancing "+account] == nil {
		t.Errorf("no ServiceAccount %s", account)
	}
	alerts := 0
	for _, group := range rules.Spec.Groups {
		for _, r := range group.Rules {
			if r.Alert == "" {
				continue
			}
			alerts++
			if want := "https://wiki.example.com/weir/" + r.Alert + ".md"; r.Annotations["runbook_url"] != want {
				t.Errorf("%s: runbook_url %q, want %s", r.Alert, r.Annotations["runbook_url"], want)
			}
		}
	}
	if alerts < 16 {
		t.Errorf("%d alerts", alerts)
	}
}

// A copy of the chart's folder alone renders the same, and Helm logs nothing while it loads it.
func TestCopiedChart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "weir")
	if err := os.CopyFS(dir, os.DirFS(chartDir)); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	_, want, err := renderFiles(t, chartDir, namespace, EveryValue)
	if err != nil {
		t.Fatal(err)
	}
	_, got, err := renderFiles(t, dir, namespace, EveryValue)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if log.Len() > 0 { // such as each symbolic link
		t.Errorf("Helm logs %s", log.String())
	}
}

// The chart accepts the values in the guides.
func TestValuesInGuides(t *testing.T) {
	for guide, want := range map[string]string{
		"aks.md":          `azure.workload.identity/client-id: $CLIENT_ID`,
		"self-managed.md": `image: "$IMAGE:$TAG"`,
	} {
		text, err := os.ReadFile(filepath.Join("../../docs/guide", guide))
		if err != nil {
			t.Fatal(err)
		}
		_, after, found := strings.Cut(string(text), "cat > values.yaml <<EOF\n")
		values, _, ended := strings.Cut(after, "\nEOF\n")
		if !found || !ended {
			t.Fatalf("%s has no values.yaml", guide)
		}
		rendered, err := Render(t, namespace, values)
		if err != nil || !strings.Contains(rendered, want) {
			t.Errorf("%s: %v, want %s in what is rendered", guide, err, want)
		}
	}
	text, err := os.ReadFile("../../docs/guide/self-managed.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "```yaml\n")
	values, _, _ := strings.Cut(after, "```\n")
	if rendered, err := Render(t, namespace, values); err != nil || !strings.Contains(rendered, `"--load-balancer-class="`) {
		t.Errorf("instead of the Azure cloud provider: %v", err)
	}
}

// helm lint has nothing to say but that a chart may have an icon.
func TestLint(t *testing.T) {
	for name, values := range map[string]string{"by default": "", "with every value": EveryValue} {
		var given map[string]any
		if err := yaml.Unmarshal([]byte(values), &given); err != nil {
			t.Fatal(err)
		}
		result := lint.RunAll(chartDir, given, namespace)
		for _, m := range result.Messages {
			if m.Severity > support.InfoSev || !strings.Contains(m.Error(), "icon is recommended") {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

// The notes name what is still missing, and the commands that check and use the release.
func TestNotes(t *testing.T) {
	for _, tt := range []struct {
		values    string
		has, lack []string
	}{
		{"", []string{
			"create secret generic weir-azure --from-file=azure.json", "No image is published", "helm test weir -n balancing --logs",
			"loadBalancerClass: weir.dev/azure", "securityGroupName", "weir status -A",
		}, []string{"weir-page-tls", "rolebinding"}},
		{EveryValue, []string{"generic other-azure", "without a loadBalancerClass", "weir-page-tls", "--serviceaccount balancing:weir-provisioner"}, []string{"No image is published"}},
	} {
		_, files, err := renderFiles(t, chartDir, "balancing", tt.values)
		if err != nil {
			t.Fatal(err)
		}
		notes := files["weir/templates/NOTES.txt"]
		for _, part := range tt.has {
			if !strings.Contains(notes, part) {
				t.Errorf("no %q in\n%s", part, notes)
			}
		}
		for _, part := range append(tt.lack, "\n\n\n", "<no value>") {
			if strings.Contains(notes, part) {
				t.Errorf("%q in\n%s", part, notes)
			}
		}
	}
}
