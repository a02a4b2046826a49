// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/trace"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/lead"
	"weir.dev/weir/internal/metrics"
)

// newAzure returns the client for the Azure that azure.json means, or for the
// emulator that the flag names. It sends nothing yet. Without spans it traces nothing.
func newAzure(o Options, cfg config.Config, arm *metrics.ARM, fence *lead.Fence, spans trace.TracerProvider) (*azure.Client, error) {
	opts := azure.Options{
		TracerProvider:   spans,
		UserAgent:        "weir/" + Version,
		VirtualNetworkID: cfg.VirtualNetworkID(),
		Observe:          arm.Observe,
		Fence:            fence,
		Closed: func(why string, until time.Time) {
			o.Log.Warn("Azure takes no more requests: pools wait", "why", why, "until", until.UTC().Format(time.RFC3339))
		},
	}
	var err error
	if o.AzureEndpoint != "" {
		opts.Endpoint, opts.Credential, err = azure.Emulator(o.AzureEndpoint)
		if err != nil {
			return nil, &UsageError{fmt.Errorf("--azure-endpoint: %w", err)}
		}
		return azure.New(opts)
	}
	env, err := config.LoadEnvironment(os.Getenv(config.EnvironmentVariable))
	if err != nil {
		return nil, &UsageError{err}
	}
	opts.Endpoint, err = azure.EndpointOf(cfg.Name, azure.Overrides{
		ResourceManager: cfg.Endpoint(env), Audience: env.TokenAudience, Authority: env.ActiveDirectoryEndpoint,
	})
	if err != nil {
		return nil, &UsageError{fmt.Errorf("%s: %w", o.ConfigFile, err)}
	}
	opts.Credential, err = azure.Credentials{
		TenantID: cfg.TenantID, ClientID: cfg.AADClientID,
		WorkloadIdentity: cfg.WorkloadIdentity(), FederatedTokenFile: cfg.AADFederatedTokenFile,
		ManagedIdentity: cfg.ManagedIdentity(), UserAssignedIdentityID: cfg.UserAssignedIdentityID,
		ClientSecret:    cfg.AADClientSecret.Reveal(),
		CertificatePath: cfg.AADClientCertPath, CertificatePassword: cfg.AADClientCertPassword.Reveal(),
	}.Token(opts.Endpoint, nil)
	if err != nil {
		return nil, &UsageError{fmt.Errorf("%s: %w", o.ConfigFile, err)}
	}
	return azure.New(opts)
}
