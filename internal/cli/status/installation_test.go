// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// deployment has two replicas of which ready are ready.
func deployment(ready int32, edit func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-controller", Labels: labels},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels}},
		Status:     appsv1.DeploymentStatus{ReadyReplicas: ready, UpdatedReplicas: 2},
	}
	d.Spec.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{{Name: "controller", Image: "weir:dev", Args: []string{"controller", "--config=/etc/weir/azure.json"}, VolumeMounts: []corev1.VolumeMount{{Name: "azure", MountPath: "/etc/weir"}}}},
		Volumes:    []corev1.Volume{{Name: "azure", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "weir-azure"}}}},
	}
	if edit != nil {
		edit(d)
	}
	return d
}

func pod(name string, edit func(*corev1.PodStatus)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: name, UID: types.UID(name), Labels: labels}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	edit(&p.Status)
	return p
}

func waitsFor(reason, message string) func(*corev1.PodStatus) {
	return func(s *corev1.PodStatus) {
		s.ContainerStatuses = []corev1.ContainerStatus{{Name: "controller", Image: "weir:dev", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
}

func ended(code int32, reason, message string) func(*corev1.PodStatus) {
	return func(s *corev1.PodStatus) {
		waitsFor("CrashLoopBackOff", "back-off 40s")(s)
		s.ContainerStatuses[0].RestartCount = 4
		s.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}
	}
}

// The cause why pods are not ready, by state, last state and events.
func TestPods(t *testing.T) {
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "e"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "a", UID: "a"},
		Type: corev1.EventTypeWarning, Reason: "FailedMount", Message: `secret "weir-azure" not found`,
	}
	leaving := pod("gone", waitsFor("ErrImagePull", "older"))
	leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Now()), []string{"example.com/x"}
	for _, tt := range []struct {
		about      string
		ready      int32
		has        []client.Object
		verdict    Severity
		reason, do string
	}{
		{"image", 0, []client.Object{pod("a", waitsFor("ErrImagePull", "not found")), pod("b", waitsFor("ErrImagePull", "not found"))}, Fail,
			"pods a, b: image weir:dev cannot be pulled (ErrImagePull): not found", "kubectl -n weir-system set image deployment/weir-controller controller=REGISTRY/weir:VERSION"},
		{"one of two", 1, []client.Object{leaving, pod("a", waitsFor("ImagePullBackOff", "not found"))}, Warn, "pod a: image weir:dev cannot be pulled", "set image"},
		{"environment", 0, []client.Object{pod("a", waitsFor("CreateContainerConfigError", `secret "proxy" not found`))}, Fail, `pod a: container controller cannot be started (CreateContainerConfigError): secret "proxy" not found`, "create what the message names"},
		{"setting", 0, []client.Object{pod("a", ended(2, "Error", "time=… level=INFO\nweir: --config: no such file\n"))}, Fail,
			"pod a: ended 4 times, the last time with exit code 2 (Error): weir: --config: no such file", "rollout restart deployment weir-controller"},
		{"no message", 0, []client.Object{pod("a", ended(1, "Error", ""))}, Fail, "with exit code 1 (Error)", "kubectl -n weir-system logs a --previous"},
		{"memory", 0, []client.Object{pod("a", ended(137, "OOMKilled", ""))}, Fail, "exit code 137 (OOMKilled)", "more memory"},
		{"no node", 0, []client.Object{pod("a", func(s *corev1.PodStatus) {
			s.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available"}}
		})}, Fail, "pod a: no node: 0/3 nodes are available", "kubectl -n weir-system describe pod a"},
		{"mount", 0, []client.Object{pod("a", waitsFor("ContainerCreating", "")), event}, Fail, `pod a: not started: FailedMount: secret "weir-azure" not found`, "create secret generic weir-azure --from-file=azure.json=azure.json"},
		{"not ready", 0, []client.Object{pod("a", func(s *corev1.PodStatus) { s.Phase = corev1.PodRunning })}, Fail, "pod a: running but not ready", "logs a"},
	} {
		installation, err := ReadInstallation(t.Context(), fake.NewClientBuilder().WithObjects(append(tt.has, deployment(tt.ready, nil))...).Build(), "weir-system")
		if err != nil {
			t.Fatal(err)
		}
		got := installation.CheckPods()
		if len(got) != 1 || got[0].Severity != tt.verdict || !strings.Contains(got[0].Why, tt.reason) || !strings.Contains(got[0].Fix, tt.do) {
			t.Errorf("%s: %+v", tt.about, got)
		}
		if first, ok := installation.FirstFailure(); ok != (tt.verdict == Fail) || ok && first != got[0] {
			t.Errorf("%s: first %+v, %t", tt.about, first, ok)
		}
	}
}

func TestDeployments(t *testing.T) {
	failure := appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: `serviceaccount "weir" not found`}
	for _, tt := range []struct {
		about   string
		has     *appsv1.Deployment
		holder  string
		verdict Severity
		reason  string
	}{
		{"well", deployment(2, nil), "", OK, "2 of 2 replicas are ready, with image weir:dev"},
		{"none", nil, "", Fail, "namespace weir-system has no Deployment of Weir"},
		{"outside of the cluster", nil, "laptop_1", OK, "laptop_1 leads"},
		{"no replicas", deployment(0, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }), "", Fail, "has 0 replicas"},
		{"no replicas, and a leader outside of the cluster", deployment(0, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }), "laptop_1", OK, "laptop_1 leads"},
		{"no pods", deployment(0, func(d *appsv1.Deployment) { d.Status.Conditions = []appsv1.DeploymentCondition{failure} }), "", Fail, `its pods cannot be created: serviceaccount "weir" not found`},
		{"no controller of Deployments", deployment(0, nil), "", Fail, "and it has no pods"},
		{"one", deployment(1, nil), "", Warn, "1 of 2 replicas of Deployment weir-system/weir-controller are ready"},
		{"a rollout", deployment(2, func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }), "", Warn, "1 of 2 replicas have its present template"},
	} {
		b := fake.NewClientBuilder()
		if tt.has != nil {
			b = b.WithObjects(tt.has)
		}
		installation, err := ReadInstallation(t.Context(), b.Build(), "weir-system")
		if err != nil {
			t.Fatal(err)
		}
		if got := installation.CheckDeployment("weir-system", tt.holder); got.Severity != tt.verdict || !strings.Contains(got.Why, tt.reason) || (got.Fix == "") != (tt.verdict == OK) {
			t.Errorf("%s: %+v", tt.about, got)
		}
	}
}

// The Secret and the key that --config reads are checked, and no content is returned.
func TestSecrets(t *testing.T) {
	const content = "hunter2hunter2"
	secret := func(keys ...string) client.Object {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-azure"}, Data: map[string][]byte{}}
		for _, k := range keys {
			if key, empty := strings.CutPrefix(k, "empty "); empty {
				s.Data[key] = nil
			} else {
				s.Data[k] = []byte(content)
			}
		}
		return s
	}
	renamed := deployment(2, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Volumes[0].Secret.Items = []corev1.KeyToPath{{Key: "cloud-config", Path: "azure.json"}}
	})
	elsewhere := deployment(2, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = []string{"controller"} })
	for _, tt := range []struct {
		about   string
		d       *appsv1.Deployment
		has     client.Object
		verdict Severity
		reason  string
	}{
		{"well", deployment(2, nil), secret("azure.json"), OK, "Secret weir-system/weir-azure has the key azure.json"},
		{"none", deployment(2, nil), nil, Fail, "there is no Secret weir-system/weir-azure"},
		{"wrong key", deployment(2, nil), secret("config.json", "x"), Fail, "lacks the key azure.json, which --config /etc/weir/azure.json reads: it has config.json, x"},
		{"an empty key", deployment(2, nil), secret("empty azure.json"), Fail, "key azure.json of Secret weir-system/weir-azure is empty"},
		{"no key", deployment(2, nil), secret(), Fail, "it has no keys"},
		{"a key by another name", renamed, secret("cloud-config"), OK, "has the key cloud-config"},
		{"that name is missing", renamed, secret("azure.json"), Fail, "lacks the key cloud-config"},
		{"a file of the node", elsewhere, nil, OK, "from no Secret"},
	} {
		b := fake.NewClientBuilder().WithObjects(tt.d)
		if tt.has != nil {
			b = b.WithObjects(tt.has)
		}
		api := b.Build()
		installation, err := ReadInstallation(t.Context(), api, "weir-system")
		if err != nil {
			t.Fatal(err)
		}
		got := installation.CheckSecret(t.Context(), api)
		if got.Severity != tt.verdict || !strings.Contains(got.Why, tt.reason) || (got.Fix == "") != (tt.verdict == OK) || strings.Contains(got.Why+got.Fix, content) {
			t.Errorf("%s: %+v", tt.about, got)
		}
	}
}

// Without the rights to read, nothing fails.
func TestWithoutRights(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	for _, of := range []string{"*v1.DeploymentList", "*v1.PodList", "*v1.EventList"} {
		api := interceptor.NewClient(fake.NewClientBuilder().WithObjects(deployment(0, nil), pod("a", waitsFor("ErrImagePull", "not found"))).Build(), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if fmt.Sprintf("%T", list) == of {
					return forbidden
				}
				return c.List(ctx, list, opts...)
			},
		})
		installation, err := ReadInstallation(t.Context(), api, "")
		if err != nil || installation.Known != (of != "*v1.DeploymentList") || installation.PodsUnseen != (of == "*v1.PodList") {
			t.Errorf("%s: %+v, %v", of, installation, err)
		}
		if f := installation.CheckDeployment("weir-system", ""); installation.Known == (f.Severity == Unknown) {
			t.Errorf("%s: %+v", of, f)
		}
	}
}
