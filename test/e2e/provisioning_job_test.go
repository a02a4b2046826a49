// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

// engine acts as Job controller, garbage collector and kubelet, which this control plane does not
// have. The API server validates its writes.
type engine struct {
	*provisioning
	node string
}

// newEngine creates a node with a kubelet that returns the same log for every pod.
func newEngine(p *provisioning, log string) *engine {
	kubelet := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !strings.HasPrefix(req.URL.Path, "/containerLogs/"+p.namespace+"/") || !strings.HasSuffix(req.URL.Path, "/step") {
			http.NotFound(w, req)
			return
		}
		text := ""
		for line := range strings.Lines(log) {
			text += "2026-11-24T04:00:00.5Z " + line
		}
		if limit, err := strconv.Atoi(req.URL.Query().Get("limitBytes")); err == nil {
			text = text[:min(len(text), limit)]
		}
		_, _ = fmt.Fprint(w, text)
	}))
	kubelet.StartTLS()
	p.t.Cleanup(kubelet.Close)
	at, err := url.Parse(kubelet.URL)
	p.must(err)
	port, err := strconv.Atoi(at.Port())
	p.must(err)
	name := p.node("kubelet", at.Hostname())
	var node corev1.Node
	p.must(p.cluster.Get(p.t.Context(), client.ObjectKey{Name: name}, &node))
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port) //nolint:gosec // a port
	p.must(p.cluster.Status().Update(p.t.Context(), &node))
	return &engine{p, name}
}

func (e *engine) job(before string) *batchv1.Job {
	e.t.Helper()
	var found *batchv1.Job
	e.eventually("a Job", func() error {
		var list batchv1.JobList
		if err := e.cluster.List(e.t.Context(), &list, client.InNamespace(e.namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			job := &list.Items[i]
			if job.DeletionTimestamp != nil && slices.Contains(job.Finalizers, metav1.FinalizerDeleteDependents) {
				e.deletePods(job)
				return errors.New("it was still there")
			}
			if string(job.UID) != before {
				found = job
				return nil
			}
		}
		return fmt.Errorf("%d Jobs", len(list.Items))
	})
	return found
}

// deletePods deletes the pods of a Job, then the Job.
func (e *engine) deletePods(job *batchv1.Job) {
	_ = e.cluster.DeleteAllOf(e.t.Context(), &corev1.Pod{}, client.InNamespace(e.namespace), client.MatchingLabels{batchv1.ControllerUidLabel: string(job.UID)}, client.GracePeriodSeconds(0))
	job.Finalizers = slices.DeleteFunc(job.Finalizers, func(f string) bool { return f == metav1.FinalizerDeleteDependents })
	_ = e.cluster.Update(e.t.Context(), job)
}

func (e *engine) createPod(job *batchv1.Job) *corev1.Pod {
	e.t.Helper()
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.GenerateName, pod.Spec.NodeName = e.namespace, job.Name+"-", e.node
	e.must(e.cluster.Create(e.t.Context(), pod))
	now := metav1.Now()
	job.Status.StartTime, job.Status.Active, job.Status.Ready = &now, 1, new(int32(1))
	e.must(e.cluster.Status().Update(e.t.Context(), job))
	return pod
}

func (e *engine) completeJob(job *batchv1.Job, pod *corev1.Pod, code int32, wantText string) {
	e.t.Helper()
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "step", Image: "fetch", ImageID: "fetch", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: wantText},
	}}}
	e.must(e.cluster.Get(e.t.Context(), client.ObjectKeyFromObject(job), job)) // another attempt may have adopted it
	now := metav1.Now()
	job.Status.Active, job.Status.Ready = 0, new(int32(0))
	current := func(kind batchv1.JobConditionType, reason string) batchv1.JobCondition {
		return batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: now}
	}
	if code == 0 {
		job.Status.Succeeded, job.Status.CompletionTime = 1, &now
		job.Status.Conditions = []batchv1.JobCondition{current(batchv1.JobSuccessCriteriaMet, ""), current(batchv1.JobComplete, "")}
	} else {
		pod.Status.Phase, job.Status.Failed = corev1.PodFailed, 1
		job.Status.Conditions = []batchv1.JobCondition{current(batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded), current(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)}
	}
	e.must(e.cluster.Status().Update(e.t.Context(), pod))
	e.must(e.cluster.Status().Update(e.t.Context(), job))
}

// A step runs a Job with the Provision's ServiceAccount. It fails once with a reason; the Job of
// the next attempt outlives its controller and is not duplicated. Its pod complies with the
// restricted Pod Security Standard.
func TestProvisioningByAJob(t *testing.T) {
	runParallel(t)
	p := newProvisioning(t)
	p.does("label", "namespace", p.namespace, "pod-security.kubernetes.io/enforce=restricted")
	p.does("-n", p.namespace, "create", "role", "runner", "--verb", "create,get,patch,delete", "--resource", "jobs.batch")
	p.does("-n", p.namespace, "create", "role", "reader", "--verb", "list,get", "--resource", "pods,pods/log")
	for _, role := range []string{"runner", "reader"} {
		p.does("-n", p.namespace, "create", "rolebinding", role, "--role", role, "--serviceaccount", p.namespace+":installer")
	}
	p.until(p.namespace+":installer", "list", "pods")
	e := newEngine(p, "fetching the payload\ngetting nowhere\n")
	p.applyFile(`
apiVersion: weir.dev/v1alpha1
kind: Provision
metadata: {name: here}
spec:
  target: {serviceAccountName: installer}
  policy: {initialInterval: 1s, maxInterval: 1s}
  steps:
    - name: payload
      job:
        image: example.com/fetch:1
        args: [--resume]
        env: [{name: FROM, value: "https://example.com/payload"}]
        resources: {requests: {memory: 16Mi}}
        volumes: [{claimName: payload, mountPath: /payload}]
        runAsUser: 1000
        terminalExitCodes: [64]
`)
	first := p.provisioner("--leader-elect=false")
	job := e.job("")
	if s := job.Spec; *s.BackoffLimit != 0 || *s.PodReplacementPolicy != batchv1.Failed || len(s.PodFailurePolicy.Rules) != 2 || *s.ActiveDeadlineSeconds < 1700 || *s.ActiveDeadlineSeconds > 1800 || s.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("the API server has the Job as %+v", s)
	}
	if by := job.ManagedFields[0]; by.Manager != "weir-provision" || job.Annotations["weir.dev/provision"] != p.namespace+"/here" || job.Annotations["weir.dev/attempt"] != "1" {
		t.Errorf("it is %s's: %v", by.Manager, job.Annotations)
	}
	e.completeJob(job, e.createPod(job), 7, "getting nowhere\n")

	second := e.job(string(job.UID))
	if second.Name != job.Name || second.Annotations["weir.dev/attempt"] != "2" {
		t.Errorf("the next attempt has %s, %v", second.Name, second.Annotations)
	}
	status := p.waitState("here", v1alpha1.ProvisionRunning, 2)
	if got := status.LastAttempt.Message; !strings.HasSuffix(got, "has failed: exit code 7: getting nowhere") {
		t.Errorf("the first attempt: %s", got)
	}
	if log := p.logs(); !strings.Contains(log, "2026-11-24T04:00:00Z | fetching the payload\n") {
		t.Errorf("its log:\n%s", log)
	}
	pod := e.createPod(second)
	first.Kill()
	p.provisioner("--leader-elect=false")
	time.Sleep(3 * time.Second) // time for a duplicate
	if got := e.job(""); got.UID != second.UID {
		t.Error("another one was made")
	}
	e.completeJob(second, pod, 0, "")
	if status := p.waitState("here", v1alpha1.ProvisionSucceeded, 2); status.AttemptNumber != 2 {
		t.Errorf("%d attempts were begun", status.AttemptNumber)
	}
}
