package etcd

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/even-keel/evenkeel/storage"
)

// Commit implements [storage.Store]. Values that the cluster's own limit does
// not take are [storage.ErrTooLarge] too.
func (s *Store) Commit(ctx context.Context, w storage.Write) (storage.Result, error) {
	if err := w.Check(); err != nil {
		return storage.Result{}, fmt.Errorf("commit: %w", err)
	}
	resp, err := s.transact(ctx, w)
	if err != nil {
		return storage.Result{}, fmt.Errorf("commit %q: %w", w.Key, err)
	}
	if !resp.Succeeded {
		result := storage.Result{Previous: s.entry(only(resp.Responses[0].GetResponseRange().GetKvs()))}
		if result.Previous.Revision == w.At {
			return storage.Result{}, fmt.Errorf("commit %q while %q is at revision %d: %w", w.Key, w.Guard.Key, w.Guard.At, storage.ErrGuard)
		}
		return result, fmt.Errorf("commit %q at revision %d, which stands at %d: %w", w.Key, w.At, result.Previous.Revision, storage.ErrConflict)
	}
	return storage.Result{
		Revision: storage.Revision(resp.Header.Revision),
		Previous: s.entry(replaced(resp.Responses[0])),
	}, nil
}

func (s *Store) transact(ctx context.Context, w storage.Write) (resp *clientv3.TxnResponse, err error) {
	name := s.name(w.Key)
	change := clientv3.OpPut(name, string(w.Value), clientv3.WithPrevKV())
	if w.Delete {
		change = clientv3.OpDelete(name, clientv3.WithPrevKV())
	}
	conditions := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(name), "=", signed(w.At))}
	if g := w.Guard; g != nil {
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(s.name(g.Key)), "=", signed(g.At)))
	}
	err = s.call(ctx, func(ctx context.Context) error {
		resp, err = s.client.Txn(ctx).
			If(conditions...).
			Then(change).
			Else(clientv3.OpGet(name)).
			Commit()
		return err
	})
	return resp, err
}

// replaced returns what a put or a delete found.
func replaced(op *pb.ResponseOp) *mvccpb.KeyValue {
	if put := op.GetResponsePut(); put != nil {
		return put.PrevKv
	}
	return only(op.GetResponseDeleteRange().GetPrevKvs())
}

func only(kvs []*mvccpb.KeyValue) *mvccpb.KeyValue {
	if len(kvs) == 0 {
		return nil
	}
	return kvs[0]
}
