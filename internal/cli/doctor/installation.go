// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli/status"
	"weir.dev/weir/internal/humanize"
)

// installed is what the checks of the installation share. They run one after the other.
type installed struct {
	Doctor
	installation status.Installation
	err          error
	leader       status.Leader
	// allLeases is false if only the Lease of the namespace was read.
	allLeases bool
}

func (d Doctor) installationChecks() []namedCheck {
	i := &installed{Doctor: d}
	return []namedCheck{
		{"secret", i.checkSecret}, // what causes the others is first
		{"pods", i.checkPods},
		{"deployment", i.checkDeployment},
		{"lease", func(ctx context.Context) []Check { return i.checkLease(ctx, time.Now()) }},
		{"version", func(context.Context) []Check { return i.checkVersion() }},
	}
}

func checksOf(findings ...status.Finding) (checks []Check) {
	for _, f := range findings {
		checks = append(checks, Check{Result: Result(f.Severity), Why: f.Why, Fix: f.Fix})
	}
	return checks
}

// read reads what the checks share.
func (i *installed) read(ctx context.Context) {
	if i.leader, i.allLeases, i.err = status.ReadLeaderOf(ctx, i.API, i.Namespace, time.Now()); i.err == nil {
		i.installation, i.err = status.ReadInstallation(ctx, i.API, i.Namespace)
	}
}

// isAbsent reports whether Weir has no Deployment, and no process of it has led. It is false if that is not known, or if the
// user named an account to check.
func (d Doctor) isAbsent(ctx context.Context) bool {
	if d.IsAccountNamed {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, CheckTimeout)
	defer cancel()
	leader, all, err := status.ReadLeaderOf(ctx, d.API, d.Namespace, time.Now())
	if err != nil || !all || !leader.Known || leader.Namespace != "" {
		return false
	}
	i, err := status.ReadInstallation(ctx, d.API, "")
	return err == nil && i.Known && i.Deployment == nil
}

func (d Doctor) reportAbsence(ctx context.Context) []Check {
	reason := "Weir is not installed in this cluster: no namespace has a Deployment of Weir, and no process of Weir has led"
	var missing []string
	for _, of := range d.definitionChecks() {
		for _, c := range of.check(ctx) {
			if c.Result == Fail || c.Result == Warn {
				missing = append(missing, strings.TrimPrefix(of.name, "definition "))
			}
		}
	}
	if len(missing) > 0 {
		reason += "; the definitions that it needs are missing or of another version: " + humanize.FormatList(missing, 5)
	}
	return singleResult(Fail, reason, "install it by docs/guide/install.md: kubectl apply --server-side -k config, or the chart. Outside of the cluster: kubectl apply --server-side -k config/crd, then weir controller")
}

// findOutside returns the leader, with the namespace of its Lease, if no pod has its name and Weir has no Deployment; empty
// otherwise, or if not known.
func (d Doctor) findOutside(ctx context.Context) (holder, namespace string) {
	ctx, cancel := context.WithTimeout(ctx, CheckTimeout)
	defer cancel()
	leader, _, err := status.ReadLeaderOf(ctx, d.API, d.Namespace, time.Now())
	host, _, _ := strings.Cut(leader.Holder, "_") // client-go's identity is HOSTNAME_UUID
	if err != nil || host == "" {
		return "", ""
	}
	if len(validation.IsDNS1123Subdomain(host)) == 0 {
		pod := &metav1.PartialObjectMetadata{}
		pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		if err := d.API.Get(ctx, client.ObjectKey{Namespace: leader.Namespace, Name: host}, pod); !apierrors.IsNotFound(err) {
			return "", ""
		}
	}
	if i, err := status.ReadInstallation(ctx, d.API, d.Namespace); err != nil || i.Deployment != nil {
		return "", ""
	}
	return leader.Holder, leader.Namespace
}

func (i *installed) checkDeployment(ctx context.Context) []Check {
	if i.err != nil {
		return noResponse(ctx, i.err)
	}
	return checksOf(i.installation.CheckDeployment(i.Namespace, i.leader.Holder))
}

func (i *installed) checkPods(ctx context.Context) []Check {
	d := i.installation.Deployment
	switch {
	case i.err != nil:
		return noResponse(ctx, i.err)
	case i.outside != "":
		return singleResult(OK, "none is needed: "+i.outside+" leads outside of the cluster", "")
	case d == nil:
		return singleResult(Unknown, "no Deployment of Weir is seen in namespace "+i.Namespace, "")
	case i.installation.PodsUnseen:
		return singleResult(Unknown, "you may not list Pods of namespace "+i.Namespace, "run it with the rights of a cluster administrator")
	}
	if found := i.installation.CheckPods(); len(found) > 0 {
		return checksOf(found...)
	}
	return singleResult(OK, "none has a problem", "")
}

func (i *installed) checkSecret(ctx context.Context) []Check {
	if i.read(ctx); i.err != nil {
		return noResponse(ctx, i.err)
	}
	if i.outside != "" {
		return singleResult(OK, "none is needed: "+i.outside+" reads azure.json outside of the cluster", "")
	}
	return checksOf(i.installation.CheckSecret(ctx, i.API))
}

func (i *installed) checkLease(ctx context.Context, now time.Time) []Check {
	if i.err != nil {
		return noResponse(ctx, i.err)
	}
	l, age := i.leader, ""
	if !l.Renewed.IsZero() {
		age = duration.HumanDuration(max(0, now.Sub(l.Renewed)))
	}
	lease := "Lease " + l.Namespace + "/" + status.LeaseName
	start := "see the checks deployment and pods; where Weir runs outside of the cluster, start it"
	switch {
	case !i.leader.Known:
		return singleResult(Unknown, "you may not get Lease "+i.Namespace+"/"+status.LeaseName, "run it with the rights of a cluster administrator")
	case len(l.Rivals) > 0:
		return singleResult(Fail, status.TwoLeadersMessage(l), status.TwoLeadersRemedy(l))
	case l.Holder != "" && !i.allLeases:
		return singleResult(OK, fmt.Sprintf("%s leads by %s, renewed %s ago; you may not list the Leases of other namespaces", l.Holder, lease, age), "")
	case l.Holder != "":
		return singleResult(OK, fmt.Sprintf("%s leads by %s, renewed %s ago", l.Holder, lease, age), "")
	case l.Namespace == "" && i.installation.Deployment != nil && !i.installation.ElectsLeader():
		return singleResult(OK, "none is needed with --leader-elect=false", "")
	case l.Namespace == "":
		return singleResult(Fail, "there is no Lease "+status.LeaseName+" in any namespace: no process of Weir has led yet", start)
	case l.Last == "":
		return singleResult(Fail, fmt.Sprintf("no process of Weir leads: the last leader has released %s %s ago", lease, age), start)
	}
	return singleResult(Fail, fmt.Sprintf("no process of Weir leads: %s has not renewed %s for %s", l.Last, lease, age), start)
}

// checkVersion compares this program with the leader, because the other checks use what this program knows.
func (i *installed) checkVersion() []Check {
	version := i.leader.Version
	switch {
	case !i.leader.Known || i.leader.Holder == "":
		return singleResult(Unknown, "no process leads, so the controller's version is unknown; this program is "+app.Version, "")
	case version == "":
		return singleResult(Unknown, fmt.Sprintf("the Lease does not show the version of the leader: it is older than this program, %s", app.Version), "upgrade Weir: docs/guide/upgrade.md")
	case version != app.Version:
		return singleResult(Warn, fmt.Sprintf("the leader is %s and this program %s, which checks for what it needs itself", version, app.Version), "use the program of release "+version+", or upgrade Weir: docs/guide/upgrade.md")
	}
	return singleResult(OK, "the leader and this program are "+version, "")
}
