// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"os"
	"time"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/leader"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/requestlog"
)

// NewClient returns an unobserved client. It sends no request.
func NewClient(o Options, cfg config.Config) (*azure.Client, error) {
	opts, err := azureOptions(o, cfg)
	if err != nil {
		return nil, err
	}
	return newObservedClient(o, cfg, opts, nil, nil, nil)
}

// newObservedClient returns a client with hooks; nil disables one.
func newObservedClient(o Options, cfg config.Config, opts azure.Options, observe func(requestlog.Call), fence *leader.Fence, writes *ratelimit.Budgets) (*azure.Client, error) {
	opts.UserAgent = "weir/" + Version
	opts.VirtualNetworkID = cfg.VirtualNetworkID()
	opts.OnRequest = observe
	opts.Fence, opts.Writes = fence, writes
	opts.OnGateClosed = func(reason string, until time.Time) {
		o.Log.Warn("Azure accepts no more requests: pools wait", "why", reason, "until", until.UTC().Format(time.RFC3339))
	}
	return azure.New(opts)
}

// azureOptions returns the endpoint and credentials.
func azureOptions(o Options, cfg config.Config) (opts azure.Options, err error) {
	if tenant := cfg.NetworkTenantID(); tenant != "" {
		opts.NetworkTenant = azure.NetworkTenant{SubscriptionID: cfg.NetworkSubscriptionID(), TenantID: tenant, OwnTenantID: cfg.TenantID}
	}
	if o.AzureEndpoint != "" {
		opts.Endpoint, opts.Credential, err = azure.LocalEndpoint(o.AzureEndpoint)
		if err != nil {
			return opts, &UsageError{Err: fmt.Errorf("--azure-endpoint: %w", err)}
		}
		return opts, nil
	}
	env, err := config.LoadEnvironment(os.Getenv(config.EnvironmentVariable))
	if err != nil {
		return opts, &UsageError{Err: err}
	}
	opts.Endpoint, err = azure.NewEndpoint(cfg.Name, azure.EndpointOverrides{
		ResourceManager: cfg.EndpointOverride(env), Audience: env.TokenAudience, Authority: env.ActiveDirectoryEndpoint,
	})
	if err != nil {
		return opts, &UsageError{Err: fmt.Errorf("%s: %w", o.ConfigFile, err)}
	}
	opts.Credential, err = azure.Credentials{
		TenantID: cfg.TenantID, ClientID: cfg.AADClientID, OtherTenants: otherTenants(cfg),
		WorkloadIdentity: cfg.WorkloadIdentity(), FederatedTokenFile: cfg.AADFederatedTokenFile,
		ManagedIdentity: cfg.ManagedIdentity(), UserAssignedIdentityID: cfg.UserAssignedIdentityID,
		ClientSecret:    cfg.AADClientSecret.Reveal(),
		CertificatePath: cfg.AADClientCertPath, CertificatePassword: cfg.AADClientCertPassword.Reveal(),
	}.NewTokenCredential(opts.Endpoint, nil)
	if err != nil {
		return opts, &UsageError{Err: fmt.Errorf("%s: %w", o.ConfigFile, err)}
	}
	return opts, nil
}

func otherTenants(cfg config.Config) []string {
	if tenant := cfg.NetworkTenantID(); tenant != "" {
		return []string{tenant}
	}
	return nil
}

// Azure is a parsed azure.json with a client for it.
type Azure struct {
	Config config.Config
	// Warning names ignored keys; empty if there are none.
	Warning string
	Client  *azure.Client
	// Settings are those of the load balancers.
	Settings loadbalancer.Settings
	// Endpoint is the base URL of Resource Manager.
	Endpoint string
}

// OpenAzure reads azure.json. It sends no request.
func OpenAzure(o Options) (Azure, error) {
	cfg, ignored, err := config.Load(o.ConfigFile)
	if err != nil {
		return Azure{}, &UsageError{Err: fmt.Errorf("--config: %w", err)}
	}
	az := Azure{Config: cfg, Warning: ignored.WarningText()}
	if az.Settings, err = loadBalancerSettings(cfg, o.ClusterName); err != nil {
		return az, &UsageError{Err: fmt.Errorf("%s: %w", o.ConfigFile, err)}
	}
	opts, err := azureOptions(o, cfg)
	if err != nil {
		return az, err
	}
	az.Endpoint = opts.Endpoint.ResourceManager
	az.Client, err = newObservedClient(o, cfg, opts, nil, nil, nil)
	return az, err
}
