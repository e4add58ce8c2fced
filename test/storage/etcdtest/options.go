package etcdtest

import (
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

// DefaultLimits leaves etcd's own limit on the size of requests.
func DefaultLimits(cfg *embed.Config) { cfg.MaxRequestBytes = embed.DefaultMaxRequestBytes }

// Quota lets a member's database grow to this size.
func Quota(bytes int64) Option {
	return func(cfg *embed.Config) { cfg.QuotaBackendBytes = bytes }
}

// ClientCertificates makes members speak TLS and take only clients with a
// certificate that the CA has signed.
func ClientCertificates(ca, cert, key string) Option {
	return func(cfg *embed.Config) {
		cfg.ListenClientUrls[0].Scheme = "https"
		cfg.AdvertiseClientUrls[0].Scheme = "https"
		cfg.ClientTLSInfo = transport.TLSInfo{TrustedCAFile: ca, CertFile: cert, KeyFile: key, ClientCertAuth: true}
	}
}
