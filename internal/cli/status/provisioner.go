// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s"
)

// NoProvisioner is the cause if Provisions wait and no provisioner runs.
const NoProvisioner = "NoProvisioner"

// Provisioner is the state of weir-provisioner.
type Provisioner struct {
	Leader
	// Waiting counts the Provisions that are not Succeeded, Failed or Cancelled.
	Waiting int
	// All counts all Provisions. Failed are those that have used up their attempts, Rejected those with an
	// invalid policy or order of steps.
	All              int
	Failed, Rejected []v1alpha1.Provision
}

// ReadProvisioner reads the leader and the Provisions of a namespace; empty means all. Waiting is 0 if the
// caller lacks permission or the CRD is missing.
func ReadProvisioner(ctx context.Context, api client.Reader, namespace string, now time.Time) (Provisioner, error) {
	var p Provisioner
	var list v1alpha1.ProvisionList
	err := api.List(ctx, &list, client.InNamespace(namespace))
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), meta.IsNoMatchError(err):
	case err != nil:
		return p, fmt.Errorf("reading Provisions: %w", err)
	}
	for i := range list.Items {
		p.All++
		if meta.IsStatusConditionFalse(list.Items[i].Status.Conditions, v1alpha1.ProvisionAccepted) {
			p.Rejected = append(p.Rejected, list.Items[i])
			continue
		}
		switch list.Items[i].Status.State {
		case v1alpha1.ProvisionFailed:
			p.Failed = append(p.Failed, list.Items[i])
		case v1alpha1.ProvisionSucceeded, v1alpha1.ProvisionCancelled:
		default:
			p.Waiting++
		}
	}
	p.Leader, err = readLeader(ctx, api, k8s.ProvisionerLease, now)
	return p, err
}

// MissingReason returns why no attempt of a Provision begins, or "" if a provisioner leads or the caller may not
// list Leases.
func (p Provisioner) MissingReason() string {
	switch {
	case !p.Known, p.Holder != "":
		return ""
	case p.Namespace == "":
		return "there is no Lease " + k8s.ProvisionerLease + ": weir-provisioner is not installed, or it runs with --leader-elect=false"
	}
	text := "no process of weir-provisioner leads"
	if !p.Renewed.IsZero() {
		text = "no process of weir-provisioner has led since " + humanize.FormatTime(p.Renewed)
	}
	if p.Last != "" {
		text += "; before, " + p.Last + " did"
	}
	return text + ": no attempt of a Provision begins or continues. Load balancers are not affected"
}

func (p Provisioner) checkProvisioner() (wrong, hints []Problem) {
	reason := p.MissingReason()
	if reason == "" || p.Waiting == 0 {
		return nil, nil
	}
	w := Problem{
		Kind: "Lease", Namespace: p.Namespace, Name: k8s.ProvisionerLease, State: NoProvisioner, cause: NoProvisioner, Since: p.Renewed,
		Why: fmt.Sprintf("%s; %s", humanize.FormatCount(p.Waiting, "Provision")+" in progress", reason),
	}
	if p.Namespace == "" { // one may run without a Lease
		return nil, []Problem{w}
	}
	return []Problem{w}, nil
}

func (p Provisioner) provisionProblems() (problems []Problem) {
	add := func(of []v1alpha1.Provision, cause, condition string) {
		for _, o := range of {
			w := Problem{Kind: "Provision", Namespace: o.Namespace, Name: o.Name, State: cmp.Or(o.Status.State, "Pending"), cause: cause}
			if c := meta.FindStatusCondition(o.Status.Conditions, condition); c != nil {
				w.Since, w.Why = c.LastTransitionTime.Time, c.Message
			}
			problems = append(problems, w)
		}
	}
	add(p.Failed, ProvisionFailed, v1alpha1.ProvisionConditionFailed)
	add(p.Rejected, ProvisionNotAccepted, v1alpha1.ProvisionAccepted)
	return problems
}
