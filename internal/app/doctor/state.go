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
	"weir.dev/weir/internal/app/status"
	"weir.dev/weir/internal/bound"
	"weir.dev/weir/internal/kube/record"
	"weir.dev/weir/internal/words"
)

func (d Doctor) state(ctx context.Context) []Check {
	seen, err := status.Read(ctx, d.API, "", time.Now())
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return one(Unknown, "there are no BackendPools to look at yet", "")
	case apierrors.IsForbidden(err):
		return one(Unknown, "you may not list BackendPools and Services of all namespaces", "run it with the rights of a cluster administrator")
	case err != nil:
		return notAnswered(ctx, err)
	}
	is := status.Judge(seen)
	if !is.Level && is.Pools.Wrong+is.Services.Wrong == 0 {
		return one(Warn, "something is wrong: "+is.Causes[0].Name, "weir status -A")
	}
	if !is.Level {
		return one(Warn, fmt.Sprintf("something is wrong with %d of %s and %d of %s: %s", is.Pools.Wrong, words.Count(is.Pools.All, "BackendPool"),
			is.Services.Wrong, words.Count(is.Services.All, "Service"), is.Causes[0].Name), "weir status -A")
	}
	return one(OK, fmt.Sprintf("%s and %s are level, on their way or paused", words.Count(is.Pools.All, "BackendPool"), words.Count(is.Services.All, "Service")), "")
}

func (d Doctor) provisioner(ctx context.Context) []Check {
	p, err := status.ReadProvisioner(ctx, d.API, "", time.Now())
	why := p.Missing()
	switch {
	case err != nil:
		return notAnswered(ctx, err)
	case !p.Known:
		return one(Unknown, "you may not list Leases of all namespaces", "run it as an administrator of the cluster")
	case why == "":
		return one(OK, p.Holder+" leads", "")
	case p.Waiting > 0:
		return one(Warn, fmt.Sprintf("%s; in progress: %s", why, words.Count(p.Waiting, "Provision")), status.Remedy(status.NoProvisioner))
	}
	return one(OK, "no Provision is in progress; "+why, "")
}

func (d Doctor) bounds(ctx context.Context) []Check {
	var all corev1.NamespaceList
	switch err := d.API.List(ctx, &all); {
	case apierrors.IsForbidden(err):
		return one(Unknown, "you may not list Namespaces", "run it with the rights of a cluster administrator")
	case err != nil:
		return notAnswered(ctx, err)
	}
	var problems []string
	set := 0
	for _, ns := range all.Items {
		b := bound.Read(ns.Name, ns.Annotations)
		problems = append(problems, b.Problems()...)
		if b.IsSet() {
			set++
		}
	}
	if len(problems) > 0 {
		return one(Warn, words.List(problems, 5), "docs/reference/bounds.md")
	}
	return one(OK, words.Count(set, "Namespace")+" with bounds by annotation; the default applies to all others", "")
}

// sharedLease is the Lease that controllers acquire before they write to the cluster's load balancers.
var sharedLease = client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "aks-managed-resource-locker"}

func (d Doctor) others(ctx context.Context) []Check {
	var pools v1alpha1.BackendPoolList
	if err := d.API.List(ctx, &pools); err == nil {
		contested := 0
		for _, p := range pools.Items {
			if meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionContested) {
				contested++
			}
		}
		if contested > 0 {
			return one(Warn, words.Count(contested, "BackendPool")+": another client keeps reverting Weir's writes", "weir status -A; docs/runbooks/WeirContested.md describes how to find it")
		}
	}
	var lease coordinationv1.Lease
	err := d.API.Get(ctx, sharedLease, &lease)
	takes := d.Azure != nil && d.Azure.Config.TakesResourceLease()
	switch {
	case apierrors.IsForbidden(err):
		return one(Unknown, "you may not get Lease "+sharedLease.String(), "run it with the rights of a cluster administrator")
	case client.IgnoreNotFound(err) != nil:
		return notAnswered(ctx, err)
	case err == nil && d.Azure != nil && !takes:
		return one(Warn, "another controller takes Lease "+sharedLease.String()+" before it writes, and Weir does not", "useResourceLease: true in azure.json, if both have the same load balancers")
	case err == nil && d.Azure == nil:
		return one(OK, "another controller takes Lease "+sharedLease.String()+": useResourceLease of azure.json has Weir take it, too", "")
	}
	return one(OK, "none is known", "")
}

// leftPools lists the pools that Weir made, does not need, and keeps for what others have in them.
func (d Doctor) leftPools(ctx context.Context) []Check {
	all, err := record.LeftPools{Reader: d.API, Namespace: d.Namespace, Log: slog.New(slog.DiscardHandler)}.ReadPools(ctx)
	switch {
	case apierrors.IsForbidden(err):
		return one(Unknown, "you may not get ConfigMap "+record.Name+" of namespace "+d.Namespace, "run it as an administrator of the cluster")
	case err != nil:
		return notAnswered(ctx, err)
	}
	var left []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		id := strings.Split(string(key), "/")
		left = append(left, fmt.Sprintf("backend pool %s of load balancer %s, made for Service %s", id[len(id)-1], id[len(id)-3], all[key]))
	}
	if len(left) > 0 {
		return one(Warn, words.List(left, 5), `whoever has put members or rules there removes them; docs/guide/services.md, "Take it away"`)
	}
	return one(OK, "none is on record", "")
}
