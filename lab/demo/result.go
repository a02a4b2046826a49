// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// reportResult prints the summary and returns the final error.
func (r *run) reportResult(ctx context.Context, err error, elapsed time.Duration) error {
	sum := Summary{Nodes: r.opts.Nodes, Seed: r.opts.Seed, Seconds: elapsed.Seconds(), Steps: r.stage.steps, Bulk: r.stage.bulkServices, Evictions: r.stage.evictions, PrivateLink: r.stage.privateLink, Gateway: r.stage.gateway, Notes: r.stage.notes}
	sum.Connections = r.stage.connections.summary()
	sum.Total, sum.Pools, sum.ARM = r.stage.observer.newSummaries(time.Now())
	if counts := r.countEvents(ctx, &sum); err == nil {
		err = r.rootCause(ctx, counts)
	}
	if wrong := sum.failureText(); err == nil && wrong != "" {
		err = errors.New(wrong)
	}
	if sum.OK = err == nil; !sum.OK {
		sum.Failure = err.Error()
	}
	r.printFailure(err)
	if sum.OK {
		r.print.printPlain("")
		r.print.writeText(greenText, "Every pool holds what the cluster wants, and what others put there.")
		for _, note := range sum.Notes {
			r.print.printPlain("Note: " + note + ".")
		}
	}
	r.print.printPlain(append([]string{""}, sum.formatTable()...)...)
	r.print.printPlain("",
		"Lag is the time from a change in the cluster until the pool in Azure shows it,",
		"including the time without a controller. The storm is counted separately.",
		fmt.Sprintf("Azure was asked for %s.", sum.ARM),
		fmt.Sprintf("Of the writes %d were of the load balancer, %d of public IPs, %d of the security", sum.ARM.Balancers, sum.ARM.PublicIPs, sum.ARM.SecurityGroups),
		"group.",
		fmt.Sprintf("Calls before a Retry-After was over: %d. The story took %.0f s.", sum.ARM.Early, elapsed.Seconds()))
	if c := sum.Connections; c != nil {
		r.print.printPlain(c.String())
	}
	if !r.opts.Stay {
		r.print.printPlain("", "Try next:",
			"  make demo STAY=1   keeps all running: for weir status, explain, calls, pause",
			"                     and page",
			"  make demo FULL=1   adds spot evictions, a Service with Private Link, and a", "                     Gateway")
	}
	if r.opts.JSON {
		encoder := json.NewEncoder(r.opts.Out)
		encoder.SetIndent("", "  ")
		err = errors.Join(err, encoder.Encode(sum))
	}
	return err
}

func (r *run) countEvents(ctx context.Context, sum *Summary) error {
	retrying, err := r.stage.cluster.serviceEvents(ctx, reasonRetrying)
	if err != nil {
		return err
	}
	failed, err := r.stage.cluster.serviceEvents(ctx, reasonFailed)
	if err != nil {
		return err
	}
	sum.addEvents(countByService(retrying), countByService(failed))
	refused, err := r.stage.cluster.serviceEvents(ctx, reasonSyncFailed)
	for _, n := range countByService(refused) {
		sum.SyncFailed += n
	}
	return err
}
