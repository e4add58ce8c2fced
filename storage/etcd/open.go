package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/even-keel/evenkeel/storage"
)

const (
	// maxSendBytes lets the greatest write through to the server, which has a
	// limit of its own.
	maxSendBytes = storage.MaxValueBytes + 1<<20

	// A member that vanishes without a word is noticed within their sum.
	keepAliveTime    = 10 * time.Second
	keepAliveTimeout = 5 * time.Second

	// What a watcher that nobody reads can make the client hold. Set to a
	// fixed size, as gRPC would let it grow to 16 MiB each.
	streamWindow = 1 << 20
	connWindow   = 16 << 20
)

// reconnect is how long the client waits before it tries a member again. gRPC
// would let it grow to two minutes, long after the cluster is back.
var reconnect = backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second}

// Open connects to a cluster and makes sure that it answers.
//
// If it does not, the error wraps [storage.ErrUnavailable] and names the
// endpoints and the reason; it wraps [ErrDenied] also if the cluster refused
// the user, and the context's error also if that ended. Options that cannot
// work are [storage.ErrInvalid].
func Open(ctx context.Context, o Options) (*Store, error) {
	o, err := o.complete()
	if err != nil {
		return nil, fmt.Errorf("open the etcd store: %w", err)
	}
	client, err := connect(ctx, o)
	if err != nil {
		advice := adviceOn(err.Error(), connectHints)
		return nil, fmt.Errorf("open the etcd store at %s: %w%s", strings.Join(o.Endpoints, ","), unavailable(err), advice)
	}
	return &Store{
		client:  client,
		watches: pb.NewWatchClient(client.ActiveConnection()),
		prefix:  o.Prefix,
		timeout: o.RequestTimeout,
	}, nil
}

// unavailable makes an error wrap storage.ErrUnavailable.
func unavailable(err error) error {
	if errors.Is(err, storage.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
}

// connect returns a client that has been answered. The first contact is made
// without a user: asking for its token says nothing about why nobody answers.
func connect(ctx context.Context, o Options) (client *clientv3.Client, err error) {
	err = within(ctx, o.DialTimeout, func(ctx context.Context) error {
		anonymous := o
		anonymous.Username, anonymous.Password = "", ""
		if client, err = dial(ctx, anonymous); err != nil {
			return err
		}
		err = probe(ctx, client, o.Prefix)
		if o.Username == "" || !errors.Is(classify(err), ErrDenied) && err != nil {
			return err
		}
		_ = client.Close()
		if client, err = dial(ctx, o); err != nil {
			return err
		}
		return probe(ctx, client, o.Prefix)
	})
	if err != nil && client != nil {
		_ = client.Close()
	}
	return client, err
}

// probe makes one linearizable read. Unlike other requests it does not wait
// for a connection: where none can be had, the error says why.
func probe(ctx context.Context, client *clientv3.Client, key string) error {
	request := &pb.RangeRequest{Key: []byte(key), CountOnly: true}
	_, err := pb.NewKVClient(client.ActiveConnection()).Range(ctx, request, grpc.WaitForReady(false))
	return err
}

// dial makes a client that outlives ctx, which bounds the making alone.
func dial(ctx context.Context, o Options) (*clientv3.Client, error) {
	lifetime, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            o.Endpoints,
		TLS:                  o.TLS,
		Username:             o.Username,
		Password:             o.Password,
		DialTimeout:          o.DialTimeout,
		DialKeepAliveTime:    keepAliveTime,
		DialKeepAliveTimeout: keepAliveTimeout,
		MaxCallSendMsgSize:   maxSendBytes,
		Context:              lifetime,
		Logger:               zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithInitialWindowSize(streamWindow),
			grpc.WithInitialConnWindowSize(connWindow),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: o.DialTimeout}),
		},
	})
	if !stop() || err != nil {
		cancel()
	}
	return client, err
}
