// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/policy"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/badlink"
	"weir.dev/weir/lab/process"
)

// provisioning is a lab with a provisioner.
type provisioning struct {
	*lab
	partner string
	notes   string // standard error of the last command
}

func newProvisioning(t *testing.T) *provisioning {
	return newProvisioningOn(newLab(t, armemu.Options{}))
}

func newProvisioningOn(l *lab) *provisioning {
	p, t := &provisioning{lab: l}, l.t
	p.partner = p.namespace
	p.env = append(p.env, noStreams)
	t.Cleanup(func() { p.mayFail("delete", "--ignore-not-found", "-k", "../../config/provisioning") })
	t.Cleanup(func() { p.mayFail("delete", "partner", p.partner) })
	t.Cleanup(func() { p.mayFail("-n", p.namespace, "delete", "provisions", "--all") })
	p.does("apply", "--server-side", "-k", "../../config/provisioning")
	p.does("-n", p.namespace, "create", "rolebinding", "weir-provisioning", "--clusterrole", "weir-provisioning-namespace", "--serviceaccount", "weir-system:weir-provisioner")
	p.does("-n", p.namespace, "create", "serviceaccount", "installer")
	p.until("weir-system:weir-provisioner", "get", "secrets")
	p.applyFile("apiVersion: weir.dev/v1alpha1\nkind: Partner\nmetadata: {name: " + p.partner + "}\nspec: {policy: {initialInterval: 1s}}\n")
	p.does("label", "namespace", p.namespace, v1alpha1.PartnerLabel+"="+p.partner)
	return p
}

// provisioner starts weir-provisioner with its ServiceAccount.
func (l *lab) provisioner(flags ...string) *program {
	l.t.Helper()
	free, err := process.FreeAddresses(l.t.Context(), 2)
	l.must(err)
	p := &program{metrics: free[0], health: free[1]}
	l.started++
	p.Process, err = process.StartCommand(l.t.Context(), process.Command{
		Name: fmt.Sprintf("weir-provisioner-%d", l.started), Dir: l.dir, Path: filepath.Join(bin, "weir-provisioner"), Env: l.env,
		Args: append([]string{
			"--kubeconfig", l.cluster.provisioner, "--metrics-bind-address", p.metrics, "--health-probe-bind-address", p.health,
			"--leader-elect-namespace", "weir-system", // the namespace of its Role
			"--leader-elect-lease-duration", "40s", "--leader-elect-renew-deadline", "30s", // as for the controller
		}, flags...),
	})
	l.must(err)
	l.t.Cleanup(func() {
		p.Kill()
		if l.t.Failed() {
			l.t.Logf("the provisioner's log:\n%s", p.ReadOutput())
		}
	})
	return p
}

func (p *provisioning) does(args ...string) {
	p.t.Helper()
	if out, err := p.cluster.kubectl(p.t.Context(), args...); err != nil {
		p.t.Fatalf("kubectl %v: %s", args, out)
	}
}

// until waits until a ServiceAccount has a permission.
func (p *provisioning) until(account, verb, resource string) {
	p.t.Helper()
	p.eventually(account+" may "+verb+" "+resource, func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + account,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: p.namespace, Verb: verb, Resource: resource},
		}}
		if err := p.cluster.Create(p.t.Context(), review); err != nil || !review.Status.Allowed {
			return fmt.Errorf("%s, %w", review.Status.Reason, err)
		}
		return nil
	})
}

// installRoles grants the namespace's ServiceAccount its permissions.
func (p *provisioning) installRoles() {
	p.t.Helper()
	p.does("-n", p.namespace, "create", "role", "installer", "--verb", "*", "--resource", "configmaps,secrets")
	p.does("-n", p.namespace, "create", "rolebinding", "installer", "--role", "installer", "--serviceaccount", p.namespace+":installer")
	p.until(p.namespace+":installer", "patch", "configmaps")
}

// weir runs the program as a user.
func (p *provisioning) weir(args ...string) string {
	p.t.Helper()
	args = append([]string{"provision"}, append(args, "-n", p.namespace, "--kubeconfig", p.cluster.admin)...)
	cmd := exec.CommandContext(p.t.Context(), filepath.Join(bin, "weir"), args...) //nolint:gosec // the test's own arguments
	var notes bytes.Buffer
	cmd.Stderr = &notes
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("weir %v: %v\n%s%s", args, err, out, &notes)
	}
	p.notes = notes.String()
	return string(out)
}

func (p *provisioning) mayFail(args ...string) {
	_, _ = p.cluster.kubectl(context.WithoutCancel(p.t.Context()), args...)
}

func (p *provisioning) applyFile(text string) {
	p.t.Helper()
	p.does("-n", p.namespace, "apply", "--server-side", "-f", p.write("apply.yaml", text))
}

func (p *provisioning) asks(name, annotation string) {
	p.t.Helper()
	p.does("-n", p.namespace, "annotate", "--overwrite", "provision", name, annotation+"="+time.Now().Format(time.RFC3339Nano))
}

// waitState waits until a Provision has a state and a number of attempts.
func (p *provisioning) waitState(name, state string, attempts int32) v1alpha1.ProvisionStatus {
	p.t.Helper()
	var got v1alpha1.Provision
	p.eventually("Provision "+name, func() error {
		if err := p.cluster.Get(p.t.Context(), key(p.namespace, name), &got); err != nil {
			return err
		}
		if got.Status.State != state || got.Status.Attempts != attempts {
			return fmt.Errorf("%s after %d attempts, last %+v, want %s after %d", got.Status.State, got.Status.Attempts, got.Status.LastAttempt, state, attempts)
		}
		return nil
	})
	return got.Status
}

// logs returns the logs of all attempts in the namespace.
func (p *provisioning) logs() string {
	var list corev1.ConfigMapList
	p.must(p.cluster.List(p.t.Context(), &list, client.InNamespace(p.namespace)))
	var logs strings.Builder
	for _, c := range list.Items {
		if strings.HasPrefix(c.Name, "weir-provision-") {
			logs.WriteString(c.Data["log"])
		}
	}
	return logs.String()
}

func (p *provisioning) configMap(name string) (*corev1.ConfigMap, error) {
	c := &corev1.ConfigMap{}
	return c, p.cluster.Get(p.t.Context(), key(p.namespace, name), c)
}

// A Provision to this cluster has exactly its ServiceAccount's permissions; its policy controls
// retries; users retry and cancel; omitted objects are pruned.
func TestProvisioningOfThisCluster(t *testing.T) {
	runParallel(t)
	p := newProvisioning(t)
	p.applyFile(fmt.Sprintf(`
apiVersion: weir.dev/v1alpha1
kind: Partner
metadata: {name: %s}
spec: {policy: {retries: 3, initialInterval: 1h, maxInterval: 1h}}
---
apiVersion: weir.dev/v1alpha1
kind: ProvisioningPolicy
metadata: {name: default}
spec: {policy: {attemptTimeout: 1m}}
---
apiVersion: v1
kind: Secret
metadata: {name: source}
stringData:
  objects.yaml: |
    apiVersion: v1
    kind: Secret
    metadata: {name: password}
    stringData: {password: hunter22}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: source}
data:
  objects.yaml: |
    {apiVersion: v1, kind: ConfigMap, metadata: {name: greeting}, data: {text: hello}}
    ---
    {apiVersion: v1, kind: ConfigMap, metadata: {name: farewell}, data: {text: bye}}
---
apiVersion: weir.dev/v1alpha1
kind: Provision
metadata: {name: here}
spec:
  target: {serviceAccountName: installer}
  steps:
    - name: objects
      manifests: {sources: [{configMap: source}, {secret: source}], prune: true}
    - name: greeted
      wait: {apiVersion: v1, kind: ConfigMap, name: greeting}
`, p.partner))
	p.provisioner("--leader-elect=false")
	status := p.waitState("here", v1alpha1.ProvisionWaiting, 1)
	if got := status.LastAttempt; got.Step != "objects" || !strings.Contains(got.Message, "system:serviceaccount:"+p.namespace+":installer") || !strings.Contains(got.Message, "forbidden") {
		t.Errorf("without rights of the ServiceAccount: %+v", got)
	}
	var whose []string
	for _, v := range status.Policy {
		whose = append(whose, v.Name+"="+v.Value+" "+v.From)
	}
	if got, want := strings.Join(whose, ", "), fmt.Sprintf("retries=3 Partner/%[1]s, initialInterval=1h0m0s Partner/%[1]s, factor=2 built-in, maxInterval=1h0m0s Partner/%[1]s, horizon=0s built-in, attemptTimeout=1m0s ProvisioningPolicy", p.partner); got != want {
		t.Errorf("the policy is\n%s\nwant\n%s", got, want)
	}

	if got := p.weir("list"); !strings.Contains(got, "Waiting   1 of 4     2") || !strings.Contains(got, "step objects: ConfigMap") {
		t.Errorf("weir provision list:\n%s", got)
	}
	p.weir("cancel", "here")
	p.waitState("here", v1alpha1.ProvisionCancelled, 1)
	p.installRoles()
	p.weir("retry-now", "here")
	p.waitState("here", v1alpha1.ProvisionSucceeded, 2)
	if c, err := p.configMap("greeting"); err != nil || c.Data["text"] != "hello" || c.ManagedFields[0].Manager != "weir-provision" {
		t.Errorf("got %+v, %v", c, err)
	}
	logs := p.weir("logs", "here")
	if !strings.Contains(logs, "attempt 1 ends: Failed, step objects") || !strings.Contains(logs, "applied ConfigMap "+p.namespace+"/greeting") || strings.Contains(logs, "hunter22") {
		t.Errorf("the logs say\n%s", logs)
	}
	if got := p.weir("logs", "here", "--attempt", "2"); got == logs || !strings.HasPrefix(got, "--- attempt 2\n") {
		t.Errorf("the log of one attempt is\n%s", got)
	}
	var shown v1alpha1.Provision
	if err := json.Unmarshal([]byte(p.weir("show", "here", "-o", "json")), &shown); err != nil || shown.Status.State != v1alpha1.ProvisionSucceeded {
		t.Errorf("weir provision show: %+v, %v", shown.Status, err)
	}
	if got := p.weir("show", "here"); !strings.Contains(got, "\nretries           3") || !strings.Contains(got, "Partner/"+p.partner) {
		t.Errorf("weir provision show:\n%s", got)
	}
	if got := p.weir("watch", "here"); !strings.Contains(got, "Succeeded  2 of 4") {
		t.Errorf("weir provision watch:\n%s", got)
	}

	p.applyFile(`
apiVersion: v1
kind: ConfigMap
metadata: {name: source}
data:
  objects.yaml: |
    {apiVersion: v1, kind: ConfigMap, metadata: {name: greeting}, data: {text: hello again}}
`)
	p.weir("reset", "here")
	p.eventually("what is not wanted any more goes", func() error {
		if _, err := p.configMap("farewell"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	p.waitState("here", v1alpha1.ProvisionSucceeded, 1)
	if c, err := p.configMap("greeting"); err != nil || c.Data["text"] != "hello again" {
		t.Errorf("got %+v, %v", c, err)
	}

	// A repeated event is counted.
	p.weir("reset", "here")
	p.eventually("two resets are one event", func() error {
		var list corev1.EventList
		p.must(p.cluster.List(t.Context(), &list, client.InNamespace(p.namespace)))
		for _, e := range list.Items {
			if e.InvolvedObject.Name == "here" && e.Reason == policy.ReasonReset && e.Count == 2 {
				return nil
			}
		}
		return errors.New("no event of a reset has the count 2")
	})
}

// If the controller is killed during an attempt, the next process continues it.
func TestProvisioningOutlivesItsProcess(t *testing.T) {
	runParallel(t)
	p := newProvisioning(t)
	p.installRoles()
	p.applyFile(`
apiVersion: weir.dev/v1alpha1
kind: Provision
metadata: {name: here}
spec:
  target: {serviceAccountName: installer}
  steps: [{name: told, wait: {apiVersion: v1, kind: ConfigMap, name: go}}]
`)
	first := p.provisioner("--leader-elect=false")
	p.waitState("here", v1alpha1.ProvisionRunning, 1)
	first.Kill()
	p.asks("here", v1alpha1.CancelAnnotation)
	p.provisioner("--leader-elect=false")
	p.eventually("the cancellation is heard", func() error {
		if status := p.waitState("here", v1alpha1.ProvisionRunning, 1); !status.Cancelled {
			return errors.New("not cancelled")
		}
		return nil
	})
	p.does("-n", p.namespace, "create", "configmap", "go")
	if status := p.waitState("here", v1alpha1.ProvisionSucceeded, 1); status.AttemptNumber != 1 {
		t.Errorf("%d attempts were begun", status.AttemptNumber)
	}
}

// Invalid Provisions that the API server rejects.
func TestRulesOfProvisioning(t *testing.T) {
	runParallel(t)
	p := newProvisioning(t)
	of := func(steps string) string {
		return `{kind: Provision, spec: {target: {serviceAccountName: a}, steps: [` + steps + `]}}`
	}
	helm := func(more string) string { return of(`{name: a, helm: {releaseName: edge` + more + `}}`) }
	const chart = `, chart: {configMap: c, key: shop.tgz}`
	for want, text := range map[string]string{
		"steps[0].helm.chart: Required value":               helm(``),
		"steps[0].helm.chart: Invalid value":                helm(`, chart: {configMap: c, secret: s, key: shop.tgz}`),
		"steps[0].helm.chart.key: Required value":           helm(`, chart: {configMap: c}`),
		"steps[0].helm.chart.key: Invalid value":            helm(`, chart: {configMap: c, key: ../shop.tgz}`),
		"steps[0].helm.chart.configMap: Invalid value":      helm(`, chart: {configMap: other/c, key: shop.tgz}`),
		"steps[0].helm.valuesFrom[0]: Invalid value":        helm(chart + `, valuesFrom: [{key: values.yaml}]`),
		"steps[0].helm.valuesFrom: Too many":                helm(chart + `, valuesFrom: [` + strings.Repeat(`{configMap: c, key: v},`, 9) + `]`),
		"steps[0].helm.values: Invalid value":               helm(chart + `, values: [a]`),
		"steps[0].helm.namespace: Invalid value":            helm(chart + `, namespace: "a/b"`),
		"steps[0].helm.releaseName: Required value":         of(`{name: a, helm: {chart: {configMap: c, key: k}}}`),
		"steps[0].helm.releaseName: Invalid value":          of(`{name: a, helm: {releaseName: Edge` + chart + `}}`),
		"steps[0].helm.releaseName: Too long":               of(`{name: a, helm: {releaseName: ` + strings.Repeat("x", 54) + chart + `}}`),
		"wait, job and migration":                           of(`{name: a, helm: {releaseName: edge` + chart + `}, migration: {to: Standard}}`),
		"steps[0].migration.to: Required value":             of(`{name: a, migration: {}}`),
		`steps[0].migration.to: Unsupported value: "Basic"`: of(`{name: a, migration: {to: Basic}}`),
		"steps[0].migration.namespace: Invalid value":       of(`{name: a, migration: {to: Standard, namespace: "a/b"}}`),
		"steps[0].migration.namespace: Too long":            of(`{name: a, migration: {to: Standard, namespace: ` + strings.Repeat("x", 64) + `}}`),
		"exactly one of kubeconfigSecret":                   `{kind: Provision, spec: {target: {}, steps: [{name: a, wait: {apiVersion: v1, kind: Node, name: node}}]}}`,
		"exactly one of manifests":                          `{kind: Provision, spec: {target: {serviceAccountName: a}, steps: [{name: a}]}}`,
		"exactly one of configMap":                          `{kind: Provision, spec: {target: {serviceAccountName: a}, steps: [{name: a, manifests: {sources: [{}]}}]}}`,
		"spec.target.serviceAccountName":                    `{kind: Provision, spec: {target: {serviceAccountName: "a:b"}, steps: [{name: a, wait: {apiVersion: v1, kind: Node, name: node}}]}}`,
		"spec.steps[0].wait.name":                           `{kind: Provision, spec: {target: {serviceAccountName: a}, steps: [{name: a, wait: {apiVersion: v1, kind: Node, name: ../n}}]}}`,
		"exactly one of manifests, helm":                    `{kind: Provision, spec: {target: {serviceAccountName: a}, steps: [{name: a, wait: {apiVersion: v1, kind: Node, name: node}, job: {image: a}}]}}`,
		"set value or secretKeyRef":                         `{kind: Provision, spec: {target: {serviceAccountName: a}, steps: [{name: a, job: {image: a, env: [{name: A, value: b, secretKeyRef: {name: c, key: d}}]}}]}}`,
		"terminalExitCodes[0]":                              `{kind: Provision, spec: {target: {serviceAccountName: a}, steps: [{name: a, job: {image: a, terminalExitCodes: [0]}}]}}`,
		"job.runAsUser":                                     `{kind: Provision, spec: {target: {serviceAccountName: a}, steps: [{name: a, job: {image: a, runAsUser: 0}}]}}`,
		"dependsOn names a step that is":                    `{kind: Provision, spec: {target: {serviceAccountName: a}, steps: [{name: a, dependsOn: [b], wait: {apiVersion: v1, kind: Node, name: node}}]}}`,
		"a step cannot depend on itself":                    `{kind: Provision, spec: {target: {serviceAccountName: a}, steps: [{name: a, dependsOn: [a], wait: {apiVersion: v1, kind: Node, name: node}}]}}`,
		"its name is default":                               `{kind: ProvisioningPolicy, spec: {policy: {}}}`,
		"spec.policy.factor":                                `{kind: Partner, spec: {policy: {factor: "0.5"}}}`,
		"want at least 1s":                                  `{kind: Partner, spec: {policy: {initialInterval: 10ms}}}`,
		"want 1s to 24h":                                    `{kind: Partner, spec: {policy: {attemptTimeout: 25h}}}`,
		"spec.policy.retries":                               `{kind: Partner, spec: {policy: {retries: -1}}}`,
		"spec.policy.maxInterval":                           `{kind: Partner, spec: {policy: {maxInterval: soon}}}`,
	} {
		object := "{apiVersion: weir.dev/v1alpha1, metadata: {name: refused}, " + text[1:]
		if out, err := p.cluster.kubectl(t.Context(), "-n", p.namespace, "create", "--dry-run=server", "-f", p.write("refused.yaml", object)); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %s, want %q", text, err, out, want)
		}
	}
	for _, text := range []string{helm(chart + `, valuesFrom: [{secret: s, key: v}], values: {a: {b: [1]}}, prune: true`), of(`{name: a, migration: {to: Standard}}`)} {
		object := "{apiVersion: weir.dev/v1alpha1, metadata: {name: accepted}, " + text[1:]
		if out, err := p.cluster.kubectl(t.Context(), "-n", p.namespace, "create", "--dry-run=server", "-o", "yaml", "-f", p.write("accepted.yaml", object)); err != nil ||
			strings.Contains(text, "migration") && !strings.Contains(out, "namespace: weir-system") {
			t.Errorf("%s: %v, %s", text, err, out)
		}
	}
}

// badNetwork is slow and breaks connections.
var badNetwork = badlink.Network{BytesPerSecond: 5 << 10, ResetPercent: 30}

// setTargetBehind makes a cluster the target of Secret edge, over a network.
func (p *provisioning) setTargetBehind(n badlink.Network, far *cluster) *badlink.Link {
	p.t.Helper()
	server, err := url.Parse(far.rest.Host)
	p.must(err)
	link, err := badlink.StartLink(p.t.Context(), server.Host, n, 3)
	p.must(err)
	p.t.Cleanup(func() { _ = link.Close() })
	kubeconfig, err := clientcmd.LoadFromFile(far.admin)
	p.must(err)
	for _, c := range kubeconfig.Clusters {
		c.Server, c.TLSServerName = "https://"+link.Addr(), server.Hostname() // the name in its certificate
	}
	for _, c := range kubeconfig.Contexts {
		c.Namespace = p.namespace
	}
	text, err := clientcmd.Write(*kubeconfig)
	p.must(err)
	p.must(p.cluster.Create(p.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "edge"}, Data: map[string][]byte{"kubeconfig": text}}))
	return link
}

// Another cluster behind an unavailable, then slow and unreliable network is provisioned; without
// retries it is not.
func TestProvisioningOverABadNetwork(t *testing.T) {
	runParallel(t)
	controlPlanes.enterPair(t)
	p := newProvisioning(t)
	far := controlPlanes.takeCluster(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}
	p.must(far.Create(t.Context(), namespace))
	t.Cleanup(func() { _ = far.Delete(context.WithoutCancel(t.Context()), namespace) })
	away := badNetwork
	away.Down = true
	link := p.setTargetBehind(away, far)
	provision := `
apiVersion: weir.dev/v1alpha1
kind: Provision
metadata: {name: %s}
spec:
  target: {kubeconfigSecret: {name: edge}}
  steps: [{name: objects, manifests: {sources: [{configMap: source}]}}]
  policy: {retries: %d, initialInterval: 1s, maxInterval: 2s, attemptTimeout: 1m}
---
`
	objects := ""
	for n := range 5 {
		objects += fmt.Sprintf("    ---\n    {apiVersion: v1, kind: ConfigMap, metadata: {name: far-%d}, data: {text: %s}}\n", n, strings.Repeat("x", 2000))
	}
	p.applyFile("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: source}\ndata:\n  objects.yaml: |\n" + objects + "---" +
		fmt.Sprintf(provision, "patient", 100) + fmt.Sprintf(provision, "impatient", 0))
	p.provisioner("--leader-elect=false")
	p.waitState("impatient", v1alpha1.ProvisionFailed, 1)
	p.eventually("more attempts", func() error {
		var got v1alpha1.Provision
		if err := p.cluster.Get(t.Context(), key(p.namespace, "patient"), &got); err != nil || got.Status.Attempts < 3 {
			return fmt.Errorf("%d attempts: %w", got.Status.Attempts, err)
		}
		return nil
	})
	link.SetNetwork(badNetwork)
	var got v1alpha1.Provision
	for end := time.Now().Add(10 * time.Minute); got.Status.State != v1alpha1.ProvisionSucceeded; time.Sleep(200 * time.Millisecond) {
		p.must(p.cluster.Get(t.Context(), key(p.namespace, "patient"), &got))
		if time.Now().After(end) {
			t.Fatalf("%+v\n%s", got.Status, p.logs())
		}
	}
	p.must(far.Get(t.Context(), key(p.namespace, "far-4"), &corev1.ConfigMap{}))
	if _, err := p.configMap("far-4"); !apierrors.IsNotFound(err) {
		t.Errorf("it is in the cluster of the Provision, too: %v", err)
	}
	t.Logf("provisioned by attempt %d: %+v", got.Status.Attempts, link.Counters())
	p.waitState("impatient", v1alpha1.ProvisionFailed, 1)
}
