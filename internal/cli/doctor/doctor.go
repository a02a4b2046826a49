// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/cli/status"
	"weir.dev/weir/internal/service"
)

// CheckTimeout is the timeout of one check.
const CheckTimeout = 10 * time.Second

// Doctor runs the checks with the caller's own permissions.
type Doctor struct {
	// REST is the API server's address; API is a client for it.
	REST                      *rest.Config
	API                       client.Client
	Namespace, ServiceAccount string
	// Azure is nil to check only the cluster.
	Azure *Azure
	// Health is nil unless the health of members is to be read.
	Health status.HealthReader
	// IsAccountNamed is set if the user named the ServiceAccount.
	IsAccountNamed bool

	// outside is the leader, if it runs outside of the cluster without a ServiceAccount, and leaseNamespace that of its Lease.
	outside, leaseNamespace string
}

// RunChecks runs all checks in order.
func (d Doctor) RunChecks(ctx context.Context) Report {
	r := Report{At: time.Now()}
	var answers bool
	r.runCheck(ctx, "API server", func(ctx context.Context) (checks []Check) {
		checks, answers = d.checkAPIServer(ctx)
		return checks
	})
	isInstalled := answers && !d.isAbsent(ctx)
	if answers && !isInstalled { // the other checks would report the same cause
		r.runCheck(ctx, "installation", d.reportAbsence)
		r.runCheck(ctx, "other controllers", d.checkOtherControllers)
	}
	if isInstalled {
		for _, of := range d.definitionChecks() {
			r.runCheck(ctx, of.name, of.check)
		}
		if !d.IsAccountNamed {
			d.outside, d.leaseNamespace = d.findOutside(ctx)
		}
		for _, of := range d.permissionChecks() {
			r.runCheck(ctx, of.name, of.check)
		}
		for _, of := range d.installationChecks() {
			r.runCheck(ctx, of.name, of.check)
		}
		r.runCheck(ctx, "admission policies", d.checkAdmission)
		r.runCheck(ctx, "state", d.checkState)
		if d.Health != nil { // it takes longer than other checks
			r.Checks = append(r.Checks, d.checkHealth(ctx))
		}
		r.runCheck(ctx, "provisioner", d.checkProvisioner)
		r.runCheck(ctx, "bounds", d.checkBounds)
		r.runCheck(ctx, "other controllers", d.checkOtherControllers)
		r.runCheck(ctx, "pools left to others", d.leftPools)
		r.runCheck(ctx, "api-versions", d.checkAPIVersions)
	}
	if d.Azure != nil {
		r.Checks = append(r.Checks, d.checkAzure(ctx)...)
	}
	return r
}

func (d Doctor) checkAzure(ctx context.Context) []Check {
	var r Report
	d.Azure.backendPools = d.memberKinds(ctx)
	for _, of := range d.Azure.allChecks() {
		r.runCheck(ctx, of.name, of.check)
	}
	for _, of := range d.Azure.actionChecks() { // which actions are needed depends on what was read
		r.runCheck(ctx, of.name, of.check)
	}
	return r.Checks
}

// memberKinds returns the kinds of members that Weir's BackendPools add to the pools of all nodes; none if they cannot be
// read, which another check reports.
func (d Doctor) memberKinds(ctx context.Context) (kinds []service.MemberKind) {
	var pools v1alpha1.BackendPoolList
	ctx, cancel := context.WithTimeout(ctx, CheckTimeout)
	defer cancel()
	if d.API == nil || d.API.List(ctx, &pools, client.InNamespace(d.Namespace)) != nil {
		return nil
	}
	for _, p := range pools.Items {
		switch {
		case p.Spec.Nodes == nil || p.DeletionTimestamp != nil || p.Status.MadeFor != v1alpha1.MadeForNodes:
		case p.Spec.Membership == v1alpha1.MembershipNetworkInterface:
			kinds = append(kinds, service.InterfaceMembers)
		default:
			kinds = append(kinds, service.AddressMembers)
		}
	}
	return kinds
}

type namedCheck struct {
	name  string
	check func(context.Context) []Check
}

func (r *Report) runCheck(ctx context.Context, name string, check func(context.Context) []Check) {
	ctx, cancel := context.WithTimeout(ctx, CheckTimeout)
	defer cancel()
	for _, c := range check(ctx) {
		if c.Name == "" {
			c.Name = name
		}
		r.Checks = append(r.Checks, c)
	}
}

func singleResult(v Result, reason, do string) []Check {
	return []Check{{Result: v, Why: reason, Fix: do}}
}

func noResponse(ctx context.Context, err error) []Check {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return singleResult(Unknown, fmt.Sprintf("no answer within %s", CheckTimeout), "retry, and check that the network allows the connection")
	}
	return singleResult(Unknown, err.Error(), "")
}
