// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/k8s/store"
	"weir.dev/weir/internal/offline"
)

func (p *planner) readObjects(ctx context.Context) error {
	if len(p.Files) > 0 {
		return p.readFiles(ctx)
	}
	if p.ServerDryRun {
		return &UsageError{Err: errors.New("--server-dry-run checks the objects of files: it requires -f")}
	}
	server, host, err := p.apiServer()
	if err != nil {
		return err
	}
	if p.objects, err = offline.ReadObjects(ctx, server, true); err != nil {
		return fmt.Errorf("API server %s: %w", host, err)
	}
	switch p.objects.Gateways, err = offline.ReadGateways(ctx, server); {
	case apierrors.IsForbidden(err):
		p.noGateways = true
	case err != nil:
		return fmt.Errorf("API server %s: %w", host, err)
	}
	p.record = readRecord(ctx, server, p.objects)
	namespace := offline.NamespaceOfNodePools(p.objects.Pools, installNamespace)
	p.owners = store.PublicIPOwners{Reader: server, Namespace: namespace}
	p.privateIPs = store.PrivateIPReservations{Reader: server, Namespace: namespace}
	p.leftPools = store.ReleasedPools{Reader: server, Namespace: namespace, Log: p.Log}
	return nil
}

func (p *planner) apiServer() (server client.Client, host string, err error) {
	rc, err := p.clusterConfig()
	if err != nil {
		return nil, "", err
	}
	rc.QPS, rc.UserAgent = -1, "weir/"+Version
	server, err = client.New(rc, client.Options{Scheme: metadata.Scheme()})
	if err != nil {
		return nil, "", fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	return server, rc.Host, nil
}

func (p *planner) readFiles(ctx context.Context) error {
	var broken []error
	for _, name := range p.Files {
		from, called := p.Stdin, "standard input"
		if name != "-" {
			file, err := os.Open(name) //nolint:gosec // whoever calls names the files
			if err != nil {
				return &UsageError{Err: fmt.Errorf("-f: %w", err)}
			}
			defer file.Close()
			from, called = file, name
		}
		broken = append(broken, p.objects.DecodeFile("-f "+called, from)...)
	}
	invalid, warnings := checkGateways(&p.objects)
	broken, p.warnings = append(broken, invalid...), warnings
	if len(broken) == 0 {
		broken = p.objects.MissingNamespaces()
	}
	if len(broken) == 0 && p.ServerDryRun {
		var err error
		if broken, err = p.validateAtServer(ctx); err != nil {
			return err
		}
	}
	if len(broken) > 0 {
		return &UsageError{Err: joinErrors(broken)}
	}
	if duplicate := p.objects.FindDuplicate(); duplicate != "" {
		return &UsageError{Err: fmt.Errorf("-f: %s is there twice: leave one of them out", duplicate)}
	}
	return nil
}

const maxReportedErrors = 20

func joinErrors(errs []error) error {
	if more := len(errs) - maxReportedErrors; more > 0 {
		errs = append(errs[:maxReportedErrors:maxReportedErrors], fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

// validateAtServer validates the objects with server-side dry-run requests.
func (p *planner) validateAtServer(ctx context.Context) (refused []error, err error) {
	server, host, err := p.apiServer()
	if err != nil {
		return nil, err
	}
	if refused, err = p.objects.ValidateOnServer(ctx, server); err != nil {
		return nil, fmt.Errorf("--server-dry-run: API server %s: %w", host, err)
	}
	return refused, nil
}
