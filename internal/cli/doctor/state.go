// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/cli/status"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s/store"
	"weir.dev/weir/internal/service"
)

func (d Doctor) checkState(ctx context.Context) []Check {
	seen, err := status.ReadSnapshot(ctx, d.API, "", time.Now())
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return singleResult(Unknown, "the API server does not serve BackendPools: see the check definition backendpools.weir.dev", "")
	case apierrors.IsForbidden(err):
		return singleResult(Unknown, "you may not list BackendPools and Services of all namespaces", "run it with the rights of a cluster administrator")
	case err != nil:
		return noResponse(ctx, err)
	}
	report := status.NewReport(seen)
	if !report.InSync && report.Pools.Wrong+report.Services.Wrong+report.Gateways.Wrong == 0 {
		return singleResult(Warn, "something is wrong: "+report.Causes[0].Name, "weir status -A")
	}
	if !report.InSync {
		text := fmt.Sprintf("%d of %s and %d of %s", report.Pools.Wrong, humanize.FormatCount(report.Pools.All, "BackendPool"), report.Services.Wrong, humanize.FormatCount(report.Services.All, "Service"))
		if report.Gateways.Wrong > 0 {
			text += fmt.Sprintf(" and %d of %s", report.Gateways.Wrong, humanize.FormatCount(report.Gateways.All, "Gateway"))
		}
		return singleResult(Warn, "something is wrong with "+text+": "+report.Causes[0].Name, "weir status -A")
	}
	text := fmt.Sprintf("%s and %s", humanize.FormatCount(report.Pools.All, "BackendPool"), humanize.FormatCount(report.Services.All, "Service"))
	if report.Gateways.All > 0 {
		text += " and " + humanize.FormatCount(report.Gateways.All, "Gateway")
	}
	text += " are in sync, in progress or paused"
	if report.GatewaysUnseen {
		return singleResult(Unknown, text+". You may not list Gateways and their routes of all namespaces", "run it with the rights of a cluster administrator")
	}
	return singleResult(OK, text, "")
}

// checkHealth names Services without a member that is up according to Azure's probes.
func (d Doctor) checkHealth(ctx context.Context) Check {
	c := Check{Name: "health of members", Result: Unknown}
	reading, cancel := context.WithTimeout(ctx, CheckTimeout)
	defer cancel()
	seen, err := status.ReadSnapshot(reading, d.API, "", time.Now())
	if err != nil {
		no := noResponse(reading, err)[0]
		c.Why, c.Fix = no.Why, no.Fix
		return c
	}
	seen.ReadHealth(ctx, d.Health)
	var down []string
	for _, cause := range status.NewReport(seen).Causes {
		for _, p := range cause.Objects {
			if cause.Name == status.AllDown {
				down = append(down, p.Text())
			}
		}
	}
	switch {
	case len(down) > 0:
		c.Result, c.Why, c.Fix = Warn, "Azure's probes report no member up: "+humanize.FormatList(down, 5), "weir explain pool NAME -n NAMESPACE --health shows the reason for each node"
	case seen.Health.Error != "":
		c.Why = seen.Health.Error
	default:
		c.Result, c.Why = OK, humanize.FormatCount(seen.Health.Read, "BackendPool")+" read; each rule with a probe has a member that is up"
	}
	return c
}

func (d Doctor) checkProvisioner(ctx context.Context) []Check {
	p, err := status.ReadProvisioner(ctx, d.API, "", time.Now())
	reason := p.MissingReason()
	switch {
	case err != nil:
		return noResponse(ctx, err)
	case !p.Known:
		return singleResult(Unknown, "you may not list Leases of all namespaces", "run it as an administrator of the cluster")
	case reason == "":
		return singleResult(OK, p.Holder+" leads", "")
	case p.Waiting > 0:
		return singleResult(Warn, fmt.Sprintf("%s; in progress: %s", reason, humanize.FormatCount(p.Waiting, "Provision")), status.RemedyFor(status.NoProvisioner))
	}
	return singleResult(OK, "no Provision is in progress; "+reason, "")
}

func (d Doctor) checkBounds(ctx context.Context) []Check {
	var list corev1.NamespaceList
	switch err := d.API.List(ctx, &list); {
	case apierrors.IsForbidden(err):
		return singleResult(Unknown, "you may not list Namespaces", "run it with the rights of a cluster administrator")
	case err != nil:
		return noResponse(ctx, err)
	}
	var problems []string
	set := 0
	for _, ns := range list.Items {
		b := service.ParseNamespaceSettings(ns.Name, ns.Annotations)
		problems = append(problems, b.InvalidMessages()...)
		if b.IsSet() {
			set++
		}
	}
	if len(problems) > 0 {
		return singleResult(Warn, humanize.FormatList(problems, 5), "docs/reference/bounds.md")
	}
	return singleResult(OK, humanize.FormatCount(set, "Namespace")+" with bounds by annotation; the default applies to all others", "")
}

// sharedLease is the Lease that controllers acquire before they write to the cluster's load balancers.
var sharedLease = client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "aks-managed-resource-locker"}

func (d Doctor) checkOtherControllers(ctx context.Context) []Check {
	var pools v1alpha1.BackendPoolList
	if err := d.API.List(ctx, &pools); err == nil {
		contested := 0
		for _, p := range pools.Items {
			if meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionContested) {
				contested++
			}
		}
		if contested > 0 {
			return singleResult(Warn, humanize.FormatCount(contested, "BackendPool")+": another client keeps reverting Weir's writes", "weir status -A; docs/runbooks/WeirContested.md describes how to find it")
		}
	}
	var lease coordinationv1.Lease
	err := d.API.Get(ctx, sharedLease, &lease)
	takes := d.Azure != nil && d.Azure.Config.IsResourceLeaseEnabled()
	switch {
	case apierrors.IsForbidden(err):
		return singleResult(Unknown, "you may not get Lease "+sharedLease.String(), "run it with the rights of a cluster administrator")
	case client.IgnoreNotFound(err) != nil:
		return noResponse(ctx, err)
	case err == nil && d.Azure != nil && !takes:
		return singleResult(Warn, "another controller uses Lease "+sharedLease.String()+" before it writes, and Weir does not", "useResourceLease: true in azure.json, if both have the same load balancers")
	case err == nil && d.Azure == nil:
		return singleResult(OK, "another controller uses Lease "+sharedLease.String()+": useResourceLease of azure.json has Weir take it, too", "")
	}
	return singleResult(OK, "none is known", "")
}

// leftPools lists the pools that Weir made, does not need, and keeps for what others have in them.
func (d Doctor) leftPools(ctx context.Context) []Check {
	pools, err := store.ReleasedPools{Reader: d.API, Namespace: d.Namespace, Log: slog.New(slog.DiscardHandler)}.ReadPools(ctx)
	switch {
	case apierrors.IsForbidden(err):
		return singleResult(Unknown, "you may not get ConfigMap "+store.Name+" of namespace "+d.Namespace, "run it as an administrator of the cluster")
	case err != nil:
		return noResponse(ctx, err)
	}
	var remaining []string
	for _, key := range slices.Sorted(maps.Keys(pools)) {
		id := strings.Split(string(key), "/")
		remaining = append(remaining, fmt.Sprintf("backend pool %s of load balancer %s, made for %s", id[len(id)-1], id[len(id)-3], service.DescribeOwner(pools[key])))
	}
	if len(remaining) > 0 {
		return singleResult(Warn, humanize.FormatList(remaining, 5), `the owner of the members or rules there has to remove them; docs/guide/services.md, "Take it away"`)
	}
	return singleResult(OK, "none is on record", "")
}
