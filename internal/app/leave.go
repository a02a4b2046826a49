// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
)

// ReleaseOptions are the flags of weir leave.
type ReleaseOptions struct {
	// LoadConfig returns the address of the cluster.
	LoadConfig func() (*rest.Config, error)
	DryRun     bool
	Out        io.Writer
}

// ReleaseCluster removes what Weir wrote to Services without a class, so that another service controller can adopt
// them. It changes nothing in Azure.
func ReleaseCluster(ctx context.Context, o ReleaseOptions) error {
	rc, err := o.LoadConfig()
	if err != nil {
		return err
	}
	rc.QPS, rc.UserAgent = -1, "weir/"+Version
	scheme := metadata.Scheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		return err
	}
	api, err := client.New(rc, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	leader, err := k8s.FindLeader(ctx, api, LeaseName, time.Now())
	if err != nil {
		return fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	if leader.Holder != "" {
		return fmt.Errorf("weir runs, and would put everything back: %s leads (Lease %s/%s). Stop it first, e.g. kubectl -n %s scale deployment weir-controller --replicas=0",
			leader.Holder, leader.Namespace, LeaseName, leader.Namespace)
	}
	var failed error
	l := Cleanup{API: api, DryRun: o.DryRun, Report: func(text string) {
		if _, err := fmt.Fprintln(o.Out, text); err != nil {
			failed = err
		}
	}}
	if err := l.RemoveAll(ctx); err != nil {
		return fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	done := "let go of"
	if o.DryRun {
		done = "would let go of"
	}
	l.Report(fmt.Sprintf("\nWeir %s %s, %s and %s. Azure was not called.", done, formatCount(l.Services, "Service"), formatCount(l.Pools, "BackendPool"), formatCount(l.Nodes, "Node")))
	if l.Skipped > 0 {
		return fmt.Errorf("not complete: %s being deleted", formatCount(l.Skipped, "Service"))
	}
	return failed
}

func formatCount(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
