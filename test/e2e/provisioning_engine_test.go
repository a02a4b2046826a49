// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/process"
)

// newWholeCluster starts a cluster with the real Job controller and garbage collector, and kubelets
// with containers that end as their image specifies.
func newWholeCluster(t *testing.T) *cluster {
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	kubelab, err := process.StartCommand(t.Context(), process.Command{
		Dir: dir, Name: "kubelab", Path: filepath.Join(bin, "kubelab"),
		Args:   []string{"up", "--exit-with-stdin", "--nodes", "2", "--dir", filepath.Join(dir, "cluster"), "--kubeconfig", kubeconfig},
		OnExit: func(err error) { t.Errorf("kubelab has ended: %v", err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kubelab.Stop)
	ready, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	if _, err := kubelab.FirstLine(ready); err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	c := &cluster{admin: filepath.Join(dir, "admin"), weir: filepath.Join(dir, "weir")}
	if err := c.install(cfg); err != nil {
		t.Fatal(err)
	}
	return c
}

// onlyPod waits for a new single running pod of a step.
func (p *provisioning) onlyPod(of, before string) *corev1.Pod {
	p.t.Helper()
	var found *corev1.Pod
	p.eventually("a pod of "+of, func() error {
		var list corev1.PodList
		if err := p.cluster.List(p.t.Context(), &list, client.InNamespace(p.namespace)); err != nil {
			return err
		}
		found = nil
		for i := range list.Items {
			pod := &list.Items[i]
			if pod.Annotations["weir.dev/provision"] != p.namespace+"/"+of || string(pod.UID) == before || pod.Status.Phase != corev1.PodRunning {
				continue
			}
			if found != nil {
				p.t.Fatalf("pods %s and %s run side by side", found.Name, pod.Name)
			}
			found = pod
		}
		if found == nil {
			return errors.New("there is none")
		}
		return nil
	})
	return found
}

// completePod completes a running container.
func (p *provisioning) completePod(pod *corev1.Pod) {
	p.t.Helper()
	patch := []byte(`{"spec":{"containers":[{"name":"step","image":"kubelab.weir.dev/exit:0"}]}}`)
	p.must(p.cluster.Patch(p.t.Context(), pod, client.RawPatch("application/strategic-merge-patch+json", patch)))
}

const ofOneJob = `
apiVersion: weir.dev/v1alpha1
kind: Provision
metadata: {name: %s}
spec:
  target: {%s}
  policy: {retries: %d, initialInterval: 1s, maxInterval: 1s, attemptTimeout: %s}
  steps: [{name: step, job: {image: "%s", terminalExitCodes: [64]}}]
---
`

// Kubernetes' Job controller handles the Jobs: failed and recreated, failed permanently, evicted
// and continued, timed out, and disconnected while running.
func TestJobsOfAWholeCluster(t *testing.T) {
	runParallel(t)
	p := newProvisioningOn(newLabOn(newWholeCluster(t), t, armemu.Options{}))
	p.does("-n", p.namespace, "create", "role", "runner", "--verb", "*", "--resource", "jobs.batch,pods,pods/log")
	p.does("-n", p.namespace, "create", "rolebinding", "runner", "--role", "runner", "--serviceaccount", p.namespace+":installer")
	p.until(p.namespace+":installer", "list", "pods")
	link := p.setTargetBehind(badNetwork, p.cluster)
	const here, far, exit = "serviceAccountName: installer", "kubeconfigSecret: {name: edge}", "kubelab.weir.dev/exit:"
	of := func(name, target string, retries int, timeout, image string) string {
		return fmt.Sprintf(ofOneJob, name, target, retries, timeout, image)
	}
	p.provisioner("--leader-elect=false")
	p.applyFile(of("done", here, 1, "10m", exit+"0") + of("fails", here, 1, "10m", exit+"3") + of("terminal", here, 1, "10m", exit+"64") + of("hangs", here, 0, "20s", "fetch"))
	p.waitState("done", v1alpha1.ProvisionSucceeded, 1)
	if got := p.waitState("fails", v1alpha1.ProvisionFailed, 2).LastAttempt.Message; !strings.Contains(got, "exit code 3") {
		t.Errorf("it fails for %s", got)
	}
	if got := p.waitState("terminal", v1alpha1.ProvisionFailed, 1).LastAttempt; got.Result != "Invalid" || !strings.Contains(got.Message, "exit code 64") {
		t.Errorf("it fails for good for %+v", got)
	}
	if got := p.waitState("hangs", v1alpha1.ProvisionFailed, 1).LastAttempt.Message; !strings.Contains(got, "was not done in the attempt's time") {
		t.Errorf("it hangs, and fails for %s", got)
	}
	p.eventually("the pod of a Job that hung is gone", func() error {
		var list corev1.PodList
		p.must(p.cluster.List(t.Context(), &list, client.InNamespace(p.namespace)))
		for _, pod := range list.Items {
			if strings.HasSuffix(pod.Annotations["weir.dev/provision"], "/hangs") {
				return errors.New("it is there")
			}
		}
		return nil
	})

	p.applyFile(of("evicted", here, 0, "10m", "fetch"))
	first := p.onlyPod("evicted", "")
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: first.Name}}
	p.must(p.cluster.SubResource("eviction").Create(t.Context(), first, eviction))
	second := p.onlyPod("evicted", string(first.UID))
	if first.Labels[batchv1.ControllerUidLabel] != second.Labels[batchv1.ControllerUidLabel] {
		t.Error("it is of another Job")
	}
	p.completePod(second)
	p.waitState("evicted", v1alpha1.ProvisionSucceeded, 1)

	p.applyFile(of("far", far, 50, "2m", "fetch"))
	pod := p.onlyPod("far", "")
	away := badNetwork
	away.Down = true
	link.SetNetwork(away)
	p.eventually("an attempt after that", func() error {
		var got v1alpha1.Provision
		if err := p.cluster.Get(t.Context(), key(p.namespace, "far"), &got); err != nil || got.Status.Attempts < 2 {
			return fmt.Errorf("%d attempts: %w", got.Status.Attempts, err)
		}
		return nil
	})
	link.SetNetwork(badNetwork)
	var job batchv1.Job
	p.eventually("the Job is taken over", func() error {
		p.must(p.cluster.Get(t.Context(), key(p.namespace, pod.Labels[batchv1.JobNameLabel]), &job))
		if job.Annotations["weir.dev/attempt"] == "1" {
			return errors.New("it is still that of the first attempt")
		}
		return nil
	})
	if *job.Spec.ActiveDeadlineSeconds < 121 {
		t.Errorf("it has %d seconds in all", *job.Spec.ActiveDeadlineSeconds)
	}
	if got := p.onlyPod("far", ""); got.UID != pod.UID {
		t.Error("it was made again")
	}
	p.completePod(pod)
	p.eventually("it is provisioned", func() error {
		var got v1alpha1.Provision
		if err := p.cluster.Get(t.Context(), key(p.namespace, "far"), &got); err != nil || got.Status.State != v1alpha1.ProvisionSucceeded {
			return fmt.Errorf("%s: %+v, %w", got.Status.State, got.Status.LastAttempt, err)
		}
		return nil
	})
}
