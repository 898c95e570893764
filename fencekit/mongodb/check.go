// Package mongodb has the check of fences in MongoDB: the filter of the update.
package mongodb

import (
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Update sets fields of the document, and its fence, unless it has a greater fence. A document that
// does not exist is inserted. Update decodes the new document. A duplicate key is a refusal, unless
// the first writes of two holders met, or another unique index has the key.
func Update(
	ctx context.Context, c *mongo.Collection, id any, fence int64, set bson.D, document any,
) error {
	filter := bson.M{"_id": id, "fence": bson.M{"$not": bson.M{"$gt": fence}}} // or no fence
	update := bson.M{"$set": append(slices.Clip(set), bson.E{Key: "fence", Value: fence})}
	err := c.FindOneAndUpdate(ctx, filter, update,
		options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After),
	).Decode(document)
	if mongo.IsDuplicateKeyError(err) {
		return fmt.Errorf("stale fence %d: %w", fence, err)
	}
	return err
}
