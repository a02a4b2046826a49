// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"bytes"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
)

// Without a provisioner a note is printed to standard error; standard output has only JSON.
func TestNoteWithoutAProvisioner(t *testing.T) {
	scheme := metadata.Scheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	now, holder := time.Now(), "p-0"
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-provisioner"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(now)),
	}}
	var out, note bytes.Buffer
	for _, tt := range []struct {
		d    Command
		at   time.Time
		want string
	}{
		{Command{API: fake.NewClientBuilder().WithScheme(scheme).Build()}, now, "weir: note: there is no Lease weir-provisioner"},
		{Command{API: fake.NewClientBuilder().WithScheme(scheme).WithObjects(lease).Build()}, now.Add(time.Minute), "weir: note: no process of weir-provisioner has led since"},
		{Command{API: fake.NewClientBuilder().WithScheme(scheme).WithObjects(lease).Build()}, now.Add(time.Second), ""},
	} {
		tt.d.Out, tt.d.Err = &out, &note
		if err := tt.d.WarnIfNoProvisioner(t.Context(), tt.at); err != nil || !strings.HasPrefix(note.String(), tt.want) || (note.Len() == 0) != (tt.want == "") || out.Len() > 0 {
			t.Errorf("%v, %q, want %q", err, note.String(), tt.want)
		}
		note.Reset()
	}
}

// Output says what blocks a Provision, which logs exist, and that there is nothing to cancel or list.
func TestProvisionMessages(t *testing.T) {
	ended, waits := &v1alpha1.Provision{}, &v1alpha1.Provision{}
	ended.Namespace, ended.Name, ended.UID = "shop", "edge", "1"
	ended.Status = v1alpha1.ProvisionStatus{State: v1alpha1.ProvisionFailed, AttemptNumber: 3, Attempts: 3, LastAttempt: &v1alpha1.ProvisionAttempt{Step: "a", Message: "no route"}}
	waits.Namespace, waits.Name, waits.UID = "shop", "circle", "2"
	waits.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ProvisionAccepted, Status: metav1.ConditionFalse, Message: "steps wait for each other: a, which waits for b"}}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "weir-provision-1-3"}, Data: map[string]string{"attempt": "3", "log": "attempt 3 begins\n"}}
	var out bytes.Buffer
	d := Command{API: fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(ended, waits, kept).Build(), Namespace: "shop", Out: &out}
	message := func(want string, err error) {
		t.Helper()
		if text := out.String(); err != nil || !strings.Contains(text, want) {
			t.Errorf("%v, %q, want %q", err, text, want)
		}
		out.Reset()
	}
	message("steps wait for each other: a, which waits for b", d.ListProvisions(t.Context()))
	message("Why         steps wait for each other: a, which waits for b", d.ShowProvision(t.Context(), "circle"))
	reached := ended.DeepCopy()
	reached.Name, reached.UID, reached.ResourceVersion, reached.Status.Target = "reached", "4", "", "https://edge:6443"
	if err := d.API.Create(t.Context(), reached); err != nil {
		t.Fatal(err)
	}
	message("Provision   shop/reached\nTarget      https://edge:6443\nState", d.ShowProvision(t.Context(), "reached"))
	message("Provision   shop/edge\nState", d.ShowProvision(t.Context(), "edge")) // before the first connection
	throttled := ended.DeepCopy()
	throttled.Name, throttled.UID, throttled.ResourceVersion = "throttled", "3", ""
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	throttled.Status.State, throttled.Status.NotBefore, throttled.Status.NextAttemptAt = v1alpha1.ProvisionWaiting, &metav1.MicroTime{Time: at}, &metav1.Time{Time: at}
	if err := d.API.Create(t.Context(), throttled); err != nil {
		t.Fatal(err)
	}
	message("Next        2026-03-01T12:00:00Z (Retry-After of the target; weir provision reset forgets it)", d.ShowProvision(t.Context(), "throttled"))
	message("asked; it is Failed, so nothing was to come, and another spec begins anew", d.RequestAction(t.Context(), "edge", v1alpha1.CancelAnnotation, time.Now()))
	message("provision.weir.dev/edge asked\n", d.RequestAction(t.Context(), "edge", v1alpha1.RetryNowAnnotation, time.Now()))
	message("--- attempt 3\nattempt 3 begins\n", d.PrintLogs(t.Context(), "edge", 3))
	if err := d.PrintLogs(t.Context(), "edge", 9); err == nil || err.Error() != "there is no log of attempt 9: kept are those of 3" {
		t.Error(err)
	}
	d.Namespace = "other"
	message("There is no Provision in namespace other: -A lists those of all.\n", d.ListProvisions(t.Context()))
}
