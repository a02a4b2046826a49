// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/referencepage"
)

// breakage is an installation that does not work.
type breakage struct {
	name string
	// cause breaks it; its cleanup mends it.
	cause func(b *broken)
	// command shows the cause; code is its exit code.
	command []string
	code    int
	// shows are parts of the cause and of the fix.
	shows []string
}

// broken is a lab in which the test plays the Deployment controller and the kubelet: neither runs here.
type broken struct {
	*lab
	t *testing.T
}

var doctorCommand = []string{"doctor"}

var breakages = []breakage{
	{"no Secret", func(b *broken) {
		b.pods(0, waiting("ContainerCreating", ""))
		b.warnPods("FailedMount", `MountVolume.SetUp failed for volume "azure" : secret "weir-azure" not found`)
	}, doctorCommand, 3, []string{
		"there is no Secret weir-system/weir-azure", `secret "weir-azure" not found`, "kubectl -n weir-system create secret generic weir-azure --from-file=azure.json=azure.json",
	}},
	{"wrong key in the Secret", func(b *broken) {
		b.secret("config.json")
		code, message := b.failsToStart("--config", "/etc/weir/azure.json")
		b.pods(0, crashed(code, message))
	}, doctorCommand, 3, []string{"lacks the key azure.json", "it has config.json", "exit code 2", "no such file or directory", "rollout restart"}},
	{"wrong identity", func(b *broken) {
		b.secret("azure.json")
		b.denyAzure("Microsoft.Network/loadBalancers/read")
		b.pods(2, ready())
		b.createLoadBalancerService("web", nil, b.node("n1", "10.0.0.1"))
		b.start(b.cluster.weir)
		b.untilStatus("AuthorizationFailed")
	}, []string{"status", "-A"}, 3, []string{"AuthorizationFailed: ", "Microsoft.Network/loadBalancers/read", "assign Weir's identity the role"}},
	{"image missing", func(b *broken) {
		b.secret("azure.json")
		b.pods(0, waiting("ImagePullBackOff", `Back-off pulling image "weir:dev": ErrImagePull: failed to resolve reference "docker.io/library/weir:dev": not found`))
	}, doctorCommand, 3, []string{"image weir:dev cannot be pulled", "not found", "kubectl -n weir-system set image deployment/weir-controller controller="}},
	{"replicas 0", func(b *broken) {
		b.secret("azure.json")
		b.kubectl("-n", "weir-system", "scale", "deployment", "weir-controller", "--replicas=0")
		b.t.Cleanup(func() { b.after("-n", "weir-system", "scale", "deployment", "weir-controller", "--replicas=2") })
		b.pods(0)
	}, []string{"status", "-A"}, 3, []string{"has 0 replicas", "kubectl -n weir-system scale deployment weir-controller --replicas=2"}},
	{"definitions missing", func(b *broken) {
		b.secret("azure.json")
		b.kubectl("delete", "--timeout=10m", "crd", "backendpools.weir.dev")
		b.t.Cleanup(b.applyDefinitions)
		code, message := b.failsToStart("--config", filepath.Join(b.dir, "azure.json"), "--azure-endpoint", b.url)
		b.pods(0, crashed(code, message))
	}, doctorCommand, 3, []string{"definition backendpools.weir.dev", "it is not in the cluster", "kubectl apply --server-side -k config/crd"}},
	{"definitions old", func(b *broken) {
		b.secret("azure.json")
		b.kubectl("patch", "crd", "backendpools.weir.dev", "--type=json", "-p", `[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/writtenAddresses"}]`)
		b.t.Cleanup(b.applyDefinitions)
		b.pods(2, ready())
		b.start(b.cluster.weir)
		b.untilLeads()
	}, doctorCommand, 3, []string{"the API server drops what it does not know", "writtenAddresses", "kubectl apply --server-side -k config/crd"}},
	{"rights missing", func(b *broken) {
		b.secret("azure.json")
		b.kubectl("delete", "clusterrolebinding", "weir-controller")
		b.t.Cleanup(func() { b.after("apply", "--server-side", "--force-conflicts", "-k", "../../config/rbac") })
		b.pods(0, running())
	}, doctorCommand, 3, []string{"rights weir-controller", "ServiceAccount weir-system/weir may not list nodes", "kubectl apply --server-side -k config"}},
	{"two leaders", func(b *broken) {
		b.secret("azure.json")
		b.pods(2, ready())
		b.start(b.cluster.weir)
		b.untilLeads()
		b.start(b.cluster.admin, "--leader-elect-namespace", "kube-system")
		b.t.Cleanup(func() { b.after("-n", "kube-system", "delete", "lease", "weir-controller", "--ignore-not-found") })
		b.untilStatus("TwoLeaders")
	}, []string{"status", "-A"}, 3, []string{"two Weirs write at once", "Lease kube-system/weir-controller", "Lease weir-system/weir-controller", "keep one, and stop the other"}},
	{"class mistyped", func(b *broken) {
		b.secret("azure.json")
		b.pods(2, ready())
		b.start(b.cluster.weir)
		b.untilLeads()
		b.createLoadBalancerService("web", func(s *corev1.Service) { s.Spec.LoadBalancerClass = new("weir.dev/azur") })
		b.untilStatus("NoController")
	}, []string{"status", "-A"}, 3, []string{`no controller has begun to serve spec.loadBalancerClass "weir.dev/azur"`, `This Weir serves spec.loadBalancerClass "weir.dev/azure"`, `"loadBalancerClass":"weir.dev/azure"`}},
	{"no security group", func(b *broken) {
		b.secret("azure.json")
		b.pods(2, ready())
		b.createLoadBalancerService("web", func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} }, b.node("n1", "10.0.0.1"))
		b.start(b.cluster.weir)
		b.ingress("web", 1)
		b.eventually("everything else is in sync", func() error {
			if _, text := b.runCommand("status"); !strings.Contains(text, "securityGroupName") || strings.Contains(text, "In progress") {
				return fmt.Errorf("%s", text)
			}
			return nil
		})
	}, []string{"status", "-A"}, 3, []string{"securityGroupName of azure.json"}},
	// A Service waits, and no Weir runs.
	{"a Service waits", func(b *broken) {
		b.secret("azure.json")
		b.kubectl("-n", "weir-system", "scale", "deployment", "weir-controller", "--replicas=0")
		b.t.Cleanup(func() { b.after("-n", "weir-system", "scale", "deployment", "weir-controller", "--replicas=2") })
		b.pods(0)
		b.createLoadBalancerService("web", nil)
		b.untilStatus("NotServed")
	}, []string{"status"}, 3, []string{"No process of Weir leads", "has 0 replicas", "NotServed: ", "weir doctor", "in namespace "}},
}

// weir status or weir doctor names the cause and the fix of each broken installation. testdata/diagnosis.txt has their
// output.
func TestBrokenInstallations(t *testing.T) {
	runParallel(t)
	c := controlPlanes.takeCluster(t)
	var shown strings.Builder
	for _, of := range breakages {
		t.Run(of.name, func(t *testing.T) {
			t.Cleanup(func() {
				if err := c.reportReady(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			})
			l := newLabOn(c, t, armemu.Options{Role: &armemu.Role{Actions: []string{"*"}}})
			b := &broken{lab: l, t: t}
			of.cause(b)
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "weir"), append(of.command, b.contextFlags(of.command)...)...)
			out, _ := cmd.CombinedOutput()
			text := string(out)
			if code := cmd.ProcessState.ExitCode(); code != of.code {
				t.Errorf("exit code %d, want %d", code, of.code)
			}
			for _, part := range of.shows {
				if !strings.Contains(text, part) {
					t.Errorf("no %q in\n%s", part, text)
				}
			}
			if strings.Contains(text, secretText) {
				t.Errorf("the content of the Secret is shown:\n%s", text)
			}
			fmt.Fprintf(&shown, "### %s\n\n$ weir %s\n%sexit code %d\n\n", of.name, strings.Join(of.command, " "), b.mask(problemPart(text)), of.code)
		})
	}
	if !t.Failed() {
		referencepage.ExpectFile(t, "testdata/diagnosis.txt", shown.String())
	}
}

// The commands that status names give a Service the class that Weir serves.
func TestAMistypedClassIsMended(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.createLoadBalancerService("web", func(s *corev1.Service) { s.Spec.LoadBalancerClass = new("weir.dev/azur") })
	l.controller()
	var text string
	l.eventually("weir status", func() error {
		if _, text = l.runCommand("status"); !strings.Contains(text, "NoController") || !strings.Contains(text, " leads.") {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	code, explanation := l.runCommand("explain", "service", "web")
	for _, part := range []string{`Class: weir.dev/azur. This Weir serves spec.loadBalancerClass "weir.dev/azure"`, "PORT", "80/TCP", "What to do: if Weir should serve it"} {
		if code != 0 || !strings.Contains(explanation, part) {
			t.Errorf("weir explain: exit code %d, no %q in\n%s", code, part, explanation)
		}
	}
	commands := regexp.MustCompile(`kubectl (-n \S+ patch service web --type merge -p) '([^']+)'`).FindAllStringSubmatch(text, -1)
	if len(commands) != 2 {
		t.Fatalf("%d commands in\n%s", len(commands), text)
	}
	for _, c := range commands {
		l.kubectl(append(strings.Fields(c[1]), c[2])...)
	}
	l.ingress("web", 1)
	_, explanation = l.runCommand("explain", "service", "web")
	if rule := l.owner("web") + "-TCP-80"; !strings.Contains(explanation, "Class: weir.dev/azure, which this Weir serves") || !strings.Contains(explanation, rule) {
		t.Errorf("no rule %s in\n%s", rule, explanation)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "weir"), "version", "--context", "lab", "--kubeconfig", l.cluster.admin).CombinedOutput()
	if text := string(out); err != nil || !strings.Contains(text, " leads, in namespace weir-system)") {
		t.Errorf("weir version: %v, %s", err, text)
	}
}

const secretText = "hunter2hunter2"

func (b *broken) contextFlags(command []string) []string {
	flags := []string{"--kubeconfig", b.cluster.admin}
	if command[0] == "status" && len(command) == 1 {
		flags = append(flags, "-n", b.namespace)
	}
	return flags
}

func (b *broken) start(kubeconfig string, flags ...string) {
	b.controller(append([]string{"--kubeconfig", kubeconfig}, flags...)...)
}

// denyAzure replaces the emulator by one with a role that lacks an action.
func (b *broken) denyAzure(action string) {
	b.lab = newLabOn(b.cluster, b.t, armemu.Options{Role: &armemu.Role{Actions: []string{"*"}, NotActions: []string{action}}})
}

// failsToStart returns the exit code and the last line of a controller that cannot start.
func (b *broken) failsToStart(flags ...string) (code int, message string) {
	ctx, cancel := context.WithTimeout(b.t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "weir"), append([]string{"controller", "--kubeconfig", b.cluster.weir, "--leader-elect-namespace", "weir-system",
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--operator-bind-address", "0"}, flags...)...)
	out, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		b.t.Fatalf("the controller starts: %v\n%s", err, out)
	}
	return cmd.ProcessState.ExitCode(), string(out[max(0, len(out)-2048):])
}

func (b *broken) untilStatus(part string) {
	b.t.Helper()
	b.eventually("weir status", func() error {
		if out, _ := exec.CommandContext(b.t.Context(), filepath.Join(bin, "weir"), "status", "-A", "--kubeconfig", b.cluster.admin).CombinedOutput(); !strings.Contains(string(out), part) {
			return fmt.Errorf("no %q in %s", part, out)
		}
		return nil
	})
}

func (b *broken) untilLeads() {
	b.t.Helper()
	b.untilStatus(" leads.")
}

// after runs kubectl when the test has ended.
func (b *broken) after(args ...string) {
	if out, err := b.cluster.kubectl(context.WithoutCancel(b.t.Context()), args...); err != nil {
		b.t.Errorf("kubectl %v: %v\n%s", args, err, out)
	}
}

func (b *broken) applyDefinitions() {
	b.after("apply", "--server-side", "--force-conflicts", "-k", "../../config/crd")
	b.after("wait", "--for=condition=Established", "crd/backendpools.weir.dev")
}

// secret creates the Secret with azure.json at this key.
func (b *broken) secret(key string) {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-azure"}, Data: map[string][]byte{key: []byte(secretText)}}
	b.must(b.cluster.Create(b.t.Context(), s))
	b.deleteAfter(s)
}

func (b *broken) deleteAfter(obj client.Object) {
	b.t.Cleanup(func() {
		if err := client.IgnoreNotFound(b.cluster.Delete(context.WithoutCancel(b.t.Context()), obj, client.GracePeriodSeconds(0))); err != nil {
			b.t.Error(err)
		}
	})
}

// pods plays the Deployment controller, and the kubelet with these states of its pods.
func (b *broken) pods(readyPods int32, states ...func(*corev1.Pod)) {
	b.t.Helper()
	var d appsv1.Deployment
	b.must(b.cluster.Get(b.t.Context(), key("weir-system", "weir-controller"), &d))
	for i := range 2 {
		if len(states) == 0 {
			break
		}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: fmt.Sprintf("weir-controller-6b7d-%d", i), Labels: d.Spec.Template.Labels}, Spec: d.Spec.Template.Spec}
		p.Spec.ServiceAccountName, p.Spec.PriorityClassName = "weir", ""
		b.must(b.cluster.Create(b.t.Context(), p))
		b.deleteAfter(p)
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}}
		for _, state := range states {
			state(p)
		}
		b.must(b.cluster.Status().Update(b.t.Context(), p))
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, ReadyReplicas: readyPods, AvailableReplicas: readyPods}
	if len(states) > 0 {
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.UnavailableReplicas = 2, 2, 2-readyPods
	}
	b.must(b.cluster.Status().Update(b.t.Context(), &d))
}

func container(p *corev1.Pod, s corev1.ContainerStatus) {
	s.Name, s.Image = "controller", p.Spec.Containers[0].Image
	p.Status.ContainerStatuses = []corev1.ContainerStatus{s}
}

func waiting(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		container(p, corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}})
	}
}

// crashed is the state of a container that ends again and again.
func crashed(code int, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		container(p, corev1.ContainerStatus{
			RestartCount:         3,
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: int32(code), Message: message}},
		})
	}
}

func running() func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		container(p, corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}})
	}
}

func ready() func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		running()(p)
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	}
}

func (b *broken) warnPods(reason, message string) {
	var pods corev1.PodList
	b.must(b.cluster.List(b.t.Context(), &pods, client.InNamespace("weir-system")))
	for _, p := range pods.Items {
		e := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: p.Namespace, GenerateName: p.Name + "."},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
			Type:           corev1.EventTypeWarning, Reason: reason, Message: message, LastTimestamp: metav1.Now(),
		}
		b.must(b.cluster.Create(b.t.Context(), e))
		b.deleteAfter(e)
	}
}

// problemPart returns the output of weir doctor without the checks that found nothing.
func problemPart(text string) string {
	if before, _, ok := strings.Cut(text, "\nOK "); ok {
		return before + "\nOK …\n"
	}
	return text
}

var (
	hostName = regexp.MustCompile(`[A-Za-z0-9.-]+_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	instant  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	ages     = regexp.MustCompile(`\b(for( up to)?|renewed|controller) \d+[smh]\d*[smh]?\b`)
	requests = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	versions = regexp.MustCompile(`this program is \S+`)
	gaps     = regexp.MustCompile(`(\S) {4,}`)
)

// mask replaces what differs between runs.
func (b *broken) mask(text string) string {
	text = strings.NewReplacer(b.namespace, "shop", b.dir, "DIR", b.url, "AZURE").Replace(text)
	text = versions.ReplaceAllString(text, "this program is VERSION")
	text = instant.ReplaceAllString(hostName.ReplaceAllString(text, "LEADER"), "TIME")
	text = requests.ReplaceAllString(ages.ReplaceAllString(text, "$1 AGE"), "ID")
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.Contains(l, "LEADER") || strings.Contains(l, "AGE") || strings.Contains(l, "TIME") { // their widths differ
			lines[i] = gaps.ReplaceAllString(l, "$1    ")
		}
	}
	return strings.Join(lines, "\n")
}
